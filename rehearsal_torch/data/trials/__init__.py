"""Trials: experiments with numbers and states, and the file that any session reads and writes."""
