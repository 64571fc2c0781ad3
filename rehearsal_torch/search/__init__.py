"""Searches: finding a good action."""
