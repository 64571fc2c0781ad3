"""Graphs: what is known of the influence structure."""
