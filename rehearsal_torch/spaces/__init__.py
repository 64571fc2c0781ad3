"""Spaces: boxes, polytopes and the regions in which actions may lie."""
