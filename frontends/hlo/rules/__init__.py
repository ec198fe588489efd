"""The import rules, one file for a family. Importing this registers them all."""

from onnxla.frontends.hlo.rules import (  # noqa: F401
    contraction,
    control_flow,
    custom_calls,
    dynamic_shapes,
    elementwise,
    indexing,
    linear_algebra,
    normalization,
    reduction,
    shape,
)
