"""Searches for the next action to try (causal Bayesian optimisation)."""
