"""From Python: `rehearse`, `learn`, `look_back`, `CausalOptimiser`, and what they return."""
