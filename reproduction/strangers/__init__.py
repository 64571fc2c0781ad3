"""Episodes of simulators that others made, whose counterfactual outcomes are known by their seeds."""
