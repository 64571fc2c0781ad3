"""Structural surrogates of rehearsal: linear, drifting and flow models, and posteriors over graphs."""
