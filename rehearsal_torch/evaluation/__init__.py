"""Evaluation: decisions compared with known truths, as rows, summaries and confidence intervals."""
