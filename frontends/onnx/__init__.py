"""ONNX models to HLO: read the file, bind the shapes, walk the graph, call one rule per node."""
