"""The study of avoiding undesired futures: rehearsal by kernels and its baselines, decision by decision."""
