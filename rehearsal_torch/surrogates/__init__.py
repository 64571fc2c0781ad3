"""Surrogates: what a method has learnt of the world."""
