"""Certificates: how sure a decision is."""
