"""The version of onnxla, once; the same as in `pyproject.toml` (a test compares them)."""

__version__ = "0.1.0"
