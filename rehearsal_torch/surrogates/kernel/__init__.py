"""Surrogates of rehearsal by kernel mean embeddings."""
