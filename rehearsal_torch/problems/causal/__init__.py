"""Causal systems to be optimised by trials."""
