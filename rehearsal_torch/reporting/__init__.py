"""Reporting: tables, summaries and reports of run folders."""
