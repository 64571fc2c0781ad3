"""Graphs: influence graphs, their independences and how to learn them from observations."""
