"""Random models: compiled code against the interpreter and onnxruntime."""
