"""The study of avoiding undesired futures: rehearsal with kernel estimators, and its baselines."""
