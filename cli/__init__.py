"""The `onnxla` command."""
