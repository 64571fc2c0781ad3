"""Surrogates: models fitted to data, from which objectives predict the outcomes of actions."""
