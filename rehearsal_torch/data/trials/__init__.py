"""Trials: experiments with numbers and states, and the file in which they are shared between processes."""
