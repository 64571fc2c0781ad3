"""Speed beside references: each row times a path of the package and a plain reference on the same work."""
