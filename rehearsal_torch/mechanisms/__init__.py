"""Mechanisms: values as functions of parents and noise."""
