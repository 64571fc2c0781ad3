"""Adapters to the interfaces of other libraries: BoTorch test functions, Gymnasium environments."""
