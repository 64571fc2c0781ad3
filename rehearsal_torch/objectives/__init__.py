"""Objectives: what an action is worth."""
