"""onnxla on engines of others. Each needs its own extra, and nothing else of onnxla imports it."""
