"""Saved models: their folders, and how they are read again."""
