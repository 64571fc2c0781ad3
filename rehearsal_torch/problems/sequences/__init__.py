"""Episodes of the past: the simulated sepsis cohort and MIMIC-III."""
