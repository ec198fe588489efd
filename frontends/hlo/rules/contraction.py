"""Products and convolutions. Asked precisions are lower bounds: sums are taken in f32 at least."""

import re
from collections.abc import Sequence

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import stablehlo_op
from onnxla.frontends.hlo.syntax import Dense, Written
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.window import ConvolutionDimensions, Window, WindowDimension

_ROLES = re.compile(r"\[([^\[\]]*)\]\s*x\s*\[([^\[\]]*)\]\s*->\s*\[([^\[\]]*)\]")


@stablehlo_op("dot_general")
def dot_general(node: OperationView, b: Builder) -> Instruction:
    if node.has("dot_dimension_numbers"):
        fields = node.structure("dot_dimension_numbers")
        lhs_batch, rhs_batch, lhs_contracting, rhs_contracting = (
            fields.get(f"{side}_{kind}_dimensions", [])
            for kind in ("batching", "contracting")
            for side in ("lhs", "rhs")
        )
    else:
        lhs_batch, rhs_batch = _sides(node, "batching_dims")
        lhs_contracting, rhs_contracting = _sides(node, "contracting_dims")
    return b.dot(
        node.operand(0), node.operand(1), lhs_contracting, rhs_contracting, lhs_batch, rhs_batch, node.element()
    )


def _sides(node: OperationView, name: str) -> tuple[list[int], list[int]]:
    lhs, rhs = node.attribute(name, default=[[], []])
    if not all(isinstance(n, int) for side in (lhs, rhs) if isinstance(side, list) for n in side):
        node.shape_error(f"{name} is no pair of lists of integers")
    return list(lhs), list(rhs)


@stablehlo_op("dot")
def dot(node: OperationView, b: Builder) -> Instruction:
    """Vectors and matrices: the last dimension of the left side with the first of the right."""
    lhs, rhs = node.operand(0), node.operand(1)
    return b.dot(lhs, rhs, [len(lhs.shape) - 1], [0], element=node.element())


@stablehlo_op("convolution")
def convolution(node: OperationView, b: Builder) -> Instruction:
    window = node.attribute("window", default={})
    spatial = len(node.operand(1).shape) - 2
    padding = window.get("pad", node.attribute("padding", default=[[0, 0]] * spatial))
    rows = padding.array().tolist() if isinstance(padding, Dense) else padding
    if not isinstance(rows, list) or any(not isinstance(r, list) or len(r) != 2 for r in rows):
        node.shape_error("the padding of a convolution is a pair for each spatial dimension")
    return convolve(node, b, [int(r[0]) for r in rows], [int(r[1]) for r in rows])


def convolve(node: OperationView, b: Builder, low: Sequence[int], high: Sequence[int]) -> Instruction:
    """A convolution with the padding given, the rest from the attributes."""
    lhs, rhs = node.operand(0), node.operand(1)
    dimensions = _dimensions(node)
    spatial = len(dimensions.kernel_spatial)
    if dimensions.rank != len(rhs.shape):
        node.shape_error(f"dim_numbers = {dimensions} do not fit {rhs.type}")
    written = node.attribute("window", default={})

    def each(name: str, short: str, default: int) -> list[int]:
        value = written.get(short, node.attribute(name, default=[default] * spatial))
        values = [int(v) for v in (value.array().reshape(-1).tolist() if isinstance(value, Dense) else value)]
        if len(values) != spatial:
            node.shape_error(f"{name} has {len(values)} values for {spatial} spatial dimensions")
        return values

    if len(low) != spatial:
        node.shape_error(f"the padding has {len(low)} pairs for {spatial} spatial dimensions")
    columns = zip(
        (rhs.shape[d] for d in dimensions.kernel_spatial),
        each("window_strides", "stride", 1),
        low,
        high,
        each("lhs_dilation", "lhs_dilate", 1),
        each("rhs_dilation", "rhs_dilate", 1),
        (bool(v) for v in each("window_reversal", "reverse", 0)),
        strict=True,
    )
    window = Window(tuple(WindowDimension(*row) for row in columns))
    groups, batch_groups = (node.integer(f"{n}_group_count", default=1) for n in ("feature", "batch"))
    return b.convolution(lhs, rhs, window, dimensions, groups, batch_groups, node.element())


def _dimensions(node: OperationView) -> ConvolutionDimensions:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
    value = node.attribute("dimension_numbers", "dim_numbers")
    found = _ROLES.search(value.text) if isinstance(value, Written) else None
    if found is None:
        node.unsupported("these dimension numbers of a convolution are not supported")
    inputs, kernel, output = ("".join(part.replace(",", " ").split()) for part in found.groups())
    return ConvolutionDimensions.parse(f"{inputs}_{kernel}->{output}")
