"""Files: reading what others wrote within bounds, writing so that nothing is lost."""
