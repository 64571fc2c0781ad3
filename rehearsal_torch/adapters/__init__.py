"""Adapters: the package in the interfaces of other libraries (BoTorch, Gymnasium)."""
