"""Surrogates of causal networks: one Gaussian-process mechanism per node."""
