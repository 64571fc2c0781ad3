"""Reporting: tables, figures and reports of run folders."""
