"""Searches: maximising an objective over actions."""
