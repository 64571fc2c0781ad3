"""Saved models: their folders, the pages that describe them, and how they are read again."""
