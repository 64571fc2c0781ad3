"""Trials: acquisition functions of BoTorch on a causal network."""
