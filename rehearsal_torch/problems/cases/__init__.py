"""Rehearsal problems: worlds and tables in which an undesired outcome is to be avoided."""
