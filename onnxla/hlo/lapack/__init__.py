"""Functions of LAPACK that XLA's CPU client calls for JAX, in operations. `calls.py` has them by name."""
