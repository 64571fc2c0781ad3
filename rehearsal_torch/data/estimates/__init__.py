"""Estimates of methods: points with intervals, and what is computed from them."""
