"""The operations, by family. Importing this package registers every one of them in `op.OPS`."""

from onnxla.hlo.ops import (
    binary,
    contraction,
    control_flow,
    elementwise,
    indexing,
    linear_algebra,
    reduction,
    shape,
    structural,
    unary,
)

__all__ = [
    "binary",
    "contraction",
    "control_flow",
    "elementwise",
    "indexing",
    "linear_algebra",
    "reduction",
    "shape",
    "structural",
    "unary",
]
