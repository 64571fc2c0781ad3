"""Causal systems to be optimised by experiments."""
