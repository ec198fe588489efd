"""Kernel IR to CUDA C++ to PTX."""
