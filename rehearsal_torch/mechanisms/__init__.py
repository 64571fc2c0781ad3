"""Mechanisms: a variable as a function of its parents and of exogenous noise."""
