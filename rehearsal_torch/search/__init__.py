"""Searches: finding a good action under an objective."""
