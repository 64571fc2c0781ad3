"""Rehearsal learning, causal Bayesian optimisation and counterfactually optimal action sequences, in one house."""
