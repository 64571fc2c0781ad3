"""Listing every option of a configuration: key, value, type and meaning."""
