"""Adapters to the interfaces of other libraries: BoTorch, Gymnasium and scikit-learn."""
