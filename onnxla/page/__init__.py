"""A compiled model as one HTML page: its graph, kernels with their code, memory over time, and times where measured."""
