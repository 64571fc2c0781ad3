"""Listing of every option of a configuration: key, value, type and description."""
