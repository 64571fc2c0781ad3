"""The study of kernel-based rehearsal (CME and its baselines)."""
