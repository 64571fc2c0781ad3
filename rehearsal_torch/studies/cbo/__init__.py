"""The study of causal Bayesian optimisation (EXCBO and its baselines)."""
