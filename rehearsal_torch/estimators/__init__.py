"""Estimators: fitting distributions, regressions and Gaussian processes to samples."""
