"""Measure the ways to compute a model's kernels on this machine, within a time bound, and remember the fastest."""
