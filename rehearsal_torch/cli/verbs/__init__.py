"""The verbs of the command line: the work of each command."""
