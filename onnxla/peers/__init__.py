"""Other runtimes of ONNX models, all called in one way, and how they take turns with ours to be timed."""
