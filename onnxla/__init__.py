"""onnxla: compile ONNX models to native CPU and GPU code."""
