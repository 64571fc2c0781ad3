"""Explorer: a page on this machine alone on which a fitted method is asked about cases and episodes."""
