"""`fallback="onnxruntime"`: what of a model cannot be compiled runs in onnxruntime, between clusters that are."""
