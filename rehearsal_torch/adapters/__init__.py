"""Adapters to the interfaces of other libraries: Gymnasium and scikit-learn."""
