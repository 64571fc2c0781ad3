"""Choosing a method: held-out predictions, cross-fitted values of decisions, the simplest of the best."""
