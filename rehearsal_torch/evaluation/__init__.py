"""Evaluation: what decisions were worth, in rows, summaries and intervals."""
