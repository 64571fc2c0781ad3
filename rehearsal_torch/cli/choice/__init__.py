"""The choice of a method from the rows (decision=auto): which methods apply, and the run of the one taken."""
