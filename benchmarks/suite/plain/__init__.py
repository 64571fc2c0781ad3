"""Plain references: formulas of the papers in NumPy, written for this comparison, without this package."""
