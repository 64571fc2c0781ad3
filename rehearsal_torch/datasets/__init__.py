"""Data sets and worlds."""
