"""Verbs: `rehearse` and `look_back` as functions of Python, with the methods of the configuration."""
