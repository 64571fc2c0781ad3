"""Searches over action sequences with at most k changes (episodes)."""
