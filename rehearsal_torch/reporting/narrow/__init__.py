"""Figures at the width of a phone: cut into their panels, and graphs in one column."""
