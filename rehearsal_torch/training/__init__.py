"""Training: fitting the parts of surrogates."""
