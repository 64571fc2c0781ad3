"""Objectives of outcome regressions: the posterior probability of success, alone and in a stack."""
