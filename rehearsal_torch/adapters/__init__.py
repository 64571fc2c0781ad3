"""Adapters to the interfaces of other libraries: BoTorch, Gymnasium, ONNX and scikit-learn."""
