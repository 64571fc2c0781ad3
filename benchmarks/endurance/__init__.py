"""Endurance: many decisions in one process, many rounds on one file, and commands that are killed."""
