"""Campaigns of experiments in worlds whose optimum is known: what laboratories have, one world each."""
