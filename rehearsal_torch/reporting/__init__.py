"""Reporting: tables and figures of runs."""
