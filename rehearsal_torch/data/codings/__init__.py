"""Codings: columns of texts as numbers, and the numbers of decisions as texts again."""
