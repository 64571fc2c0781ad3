"""Explanations of single decisions: what speaks for them, what comes second, and what would end them."""
