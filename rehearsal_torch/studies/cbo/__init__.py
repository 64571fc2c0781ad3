"""The study of causal Bayesian optimisation: trials with learnt noise and their baselines."""
