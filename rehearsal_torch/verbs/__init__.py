"""Verbs: rehearsing and looking back as one function each, with the methods of the configuration."""
