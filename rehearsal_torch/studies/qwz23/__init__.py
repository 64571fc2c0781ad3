"""The study of rehearsal with structural models (QWZ23 and its baselines)."""
