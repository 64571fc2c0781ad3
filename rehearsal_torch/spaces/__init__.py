"""Spaces: what may be set, and to what."""
