"""Searches for the next trial (causal Bayesian optimisation)."""
