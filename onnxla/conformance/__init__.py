"""ONNX's own backend tests, run through our backend and through onnxruntime."""
