"""Outcome regression: posterior models of how the outcomes respond, from which success is counted."""
