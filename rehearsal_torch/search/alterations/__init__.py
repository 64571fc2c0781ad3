"""Searches over alterations of continuous variables (rehearsal)."""
