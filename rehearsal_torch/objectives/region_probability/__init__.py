"""Probability that a Gaussian outcome falls into a polytope."""
