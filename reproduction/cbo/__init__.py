"""The study of causal Bayesian optimisation with learnt distributions of the noise, and its baselines."""
