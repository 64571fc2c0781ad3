"""Configurations of strangers, for ``hydra.searchpath=[pkg://reproduction.strangers.conf]``."""
