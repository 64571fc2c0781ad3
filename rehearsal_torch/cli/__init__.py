"""Command line: from arguments and configuration to a run folder."""
