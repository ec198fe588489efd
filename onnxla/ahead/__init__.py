"""Ahead of time: a compiled model as a C library that needs neither Python nor onnxla."""
