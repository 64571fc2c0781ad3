"""Surrogates of rehearsal by structural models."""
