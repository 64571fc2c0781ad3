"""Files: reading within bounds what others wrote, writing so that nothing is lost."""
