"""Probability that a Gaussian outcome falls into a convex region."""
