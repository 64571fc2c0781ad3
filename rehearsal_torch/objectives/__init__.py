"""Objectives: the value of an action under a surrogate."""
