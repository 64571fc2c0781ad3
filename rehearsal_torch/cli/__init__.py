"""Command line: from what was typed to a run folder."""
