"""Missing cells: counts of them, rows that are complete, and multiple imputation."""
