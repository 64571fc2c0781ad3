"""Commands: what the scripts do."""
