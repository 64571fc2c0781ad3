"""Data: tables, episodes, situations and decisions."""
