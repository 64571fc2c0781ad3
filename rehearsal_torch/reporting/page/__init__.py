"""The report of a run as one HTML page that can be handed on: no scripts, nothing loaded from elsewhere."""
