"""Kernel surrogates of rehearsal: nested kernel ridge regression and its approximations."""
