"""Convolution as a contraction: rows are output pixels, columns output features, depth the window and input features.

The input is read in place, a row pointer for each output pixel; nothing is unfolded. Where the
window hangs over the edge, or the input is dilated, a padded copy is made first. With channels
last and an undilated window, kernel columns and features are one consecutive run of depth.
Grouped convolutions are batches of smaller ones; depthwise ones have a schedule of their own.
"""

import math
from dataclasses import dataclass

import numpy as np

from onnxla.codegen.choices import Way
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.contraction import emit_contraction
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.loop import name_of
from onnxla.codegen.kernels.operand_copy import copy_operand, multiplied_as, read_operand
from onnxla.codegen.kernels.register_tile import (
    DType,
    PackedRight,
    PlainRight,
    Problem,
    Right,
    group_of,
    pack_panels,
    packed_element,
)
from onnxla.codegen.kernels.tiling import Shapes, Tiling
from onnxla.codegen.kernels.tilings import Cut, tile_ways
from onnxla.codegen.kernels.value import Array, Index
from onnxla.codegen.lowering import KernelCall, Lowering, Packed
from onnxla.hlo.builder import Ints
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import Array as NumpyArray
from onnxla.hlo.types import Shape, TensorType


def convolution_ways(cluster: Cluster, hero: Instruction, target: Target) -> list[Way]:
    """`hero` is the convolution of the cluster; its operands are leaves. Empty where the loop schedule is as good."""
    op = hero.op
    assert isinstance(op, Convolution)
    number = cluster.operand_number(hero.operands[1])
    constant = isinstance(cluster.instruction.operands[number].op, Constant)
    elements = [o.tensor_type.element for o in hero.operands]
    group = group_of(elements[0], elements[1], op.element, target) if constant else 1
    view = ConvolutionView.of(hero, group)
    if op.batch_group_count > 1 or any(w.reversal for w in op.window.dimensions):
        return []
    element = multiplied_as(elements[0], view.group)
    calls, temporaries, copied = copy_operand(cluster, hero, target, *view.padding(), element)
    left_leaf, right_leaf = hero.operands

    def frame_of(name: str, tasks: int, tiling: Tiling) -> tuple[Frame, Problem, Right]:
        omit = (*((left_leaf,) if calls else ()), *((right_leaf,) if constant else ()))
        frame = Frame(cluster, name, tasks, cluster.replaced(hero, *omit))
        left = read_operand(frame, left_leaf, copied, bool(calls))
        problem = Problem(
            view.groups,
            view.rows,
            view.columns,
            view.depth,
            left,
            view.left_index,
            op.element,
            view.result_index,
            view.group,
        )
        if not constant:
            array = frame.emitter.leaves[right_leaf]
            assert isinstance(array, Array)
            return frame, problem, PlainRight(array, view.right_index, tiling.width)
        kept = packed_element(op.element, view.group)
        panels = -(-view.columns // tiling.width)
        panel = math.prod(view.depth) * tiling.width
        buffer = frame.b.parameter("packed", kept, view.groups * panels * panel * view.group, "input", 64)
        packing = f"convolution {op.dimensions} groups={view.groups} x{tiling.width} {kept}/{view.group}"
        frame.arguments.append(Packed(number, packing, lambda a: view.pack(a, tiling.width, kept.dtype)))
        return frame, problem, PackedRight(buffer, tiling.width, panel, panels * panel, view.group)

    shapes = Shapes(view.groups, view.rows, view.columns, view.depth, copied.bytes // view.groups)
    right_bytes = view.columns * math.prod(view.depth) * packed_element(op.element, view.group).bytes * view.group

    def lower(tiling: Tiling) -> Lowering:
        kernel, arguments = emit_contraction(
            cluster, hero, lambda name, tasks: frame_of(name, tasks, tiling), shapes, tiling, name_of(cluster)
        )
        return Lowering((*calls, KernelCall(kernel, arguments)), temporaries)

    cut = Cut(shapes, op.element, view.equidistant, view.group, right_bytes, constant)
    return tile_ways(cut, target, lower)


@dataclass(frozen=True)
class ConvolutionView:
    """The dimensions of a convolution over its padded input, sorted by what they do."""

    op: Convolution
    result: TensorType
    kernel: TensorType
    groups: int
    rows: Shape
    """Batch, then output positions."""
    columns: int
    """Output features of one group."""
    depth: Shape
    """Kernel positions and input features of one group; the last kernel dimension and the features may be merged."""
    merged: bool
    equidistant: bool
    group: int
    """Neighbouring features that one instruction multiplies and adds; `depth` counts groups."""
    features: int
    """Input features of one group of the convolution, rounded up to whole groups of neighbours."""

    @property
    def extra_features(self) -> int:
        """Features of zeros that the input needs after its own."""
        return self.features - self.kernel.shape[self.op.dimensions.kernel_input_feature]

    def padding(self) -> tuple[Ints, Ints, Ints]:
        """What the input needs below, above and between its elements, by its dimensions."""
        dims = self.op.dimensions
        low, high, interior = [0] * self.result.rank, [0] * self.result.rank, [0] * self.result.rank
        for dimension, w in zip(dims.input_spatial, self.op.window.dimensions, strict=True):
            low[dimension], high[dimension], interior[dimension] = w.pad_low, w.pad_high, w.base_dilation - 1
        high[dims.input_feature] = self.extra_features
        return low, high, interior

    @staticmethod
    def of(hero: Instruction, group: int) -> "ConvolutionView":
        op = hero.op
        assert isinstance(op, Convolution)
        dims, kernel = op.dimensions, hero.operands[1].tensor_type
        groups = op.feature_group_count
        rows = tuple(hero.shape[d] for d in (dims.output_batch, *dims.output_spatial))
        features = kernel.shape[dims.kernel_input_feature]
        window = tuple(w.size for w in op.window.dimensions)
        rank = len(window) + 2
        channels_last = rank > 2 and dims.input_feature == rank - 1 and dims.input_spatial[-1] == rank - 2
        if not channels_last or (groups > 1 and features % group):
            group = 1
        features = -(-features // group) * group
        merged = channels_last and op.window.dimensions[-1].window_dilation == 1 and groups == 1
        depth = (*window[:-1], window[-1] * features // group) if merged else (*window, features // group)
        plain = all(
            w.size == 1 and w.stride == 1 and not w.pad_low and not w.pad_high and w.base_dilation == 1
            for w in op.window.dimensions
        )
        in_order = (dims.input_batch, *dims.input_spatial) == tuple(range(rank - 1))
        return ConvolutionView(
            op,
            hero.tensor_type,
            kernel,
            groups,
            rows,
            kernel.shape[dims.kernel_output_feature] // groups,
            depth,
            merged,
            plain and in_order,
            group,
            features,
        )

    def left_index(self, group: Expr, row: Index, depth: Index) -> Index:
        """Where a row's pixel reads at one depth, in the padded input."""
        dims, windows = self.op.dimensions, self.op.window.dimensions
        batch, *pixel = row
        places = list(depth)
        where: dict[int, Expr] = {dims.input_batch: batch}
        if self.merged:
            # (kernel column, feature) as one run: past the last feature lies the next pixel's first
            where[dims.input_feature] = places.pop()
            places.append(ix.ZERO)
        else:
            where[dims.input_feature] = group * self.features + places.pop()
        for dimension, at, place, w in zip(dims.input_spatial, pixel, places, windows, strict=True):
            where[dimension] = at * w.stride + place * w.window_dilation
        return tuple(where[d] for d in range(len(where)))

    def right_index(self, group: Expr, depth: Expr, column: Expr) -> Index:
        dims = self.op.dimensions
        shape = tuple(self.kernel.shape[d] for d in (*dims.kernel_spatial, dims.kernel_input_feature))
        where = dict(zip((*dims.kernel_spatial, dims.kernel_input_feature), ix.delinearize(depth, shape), strict=True))
        where[dims.kernel_output_feature] = group * self.columns + column
        return tuple(where[d] for d in range(len(where)))

    def result_index(self, group: Expr, row: Index, column: Expr) -> Index:
        dims = self.op.dimensions
        where = dict(zip((dims.output_batch, *dims.output_spatial), row, strict=True))
        where[dims.output_feature] = group * self.columns + column
        return tuple(where[d] for d in range(len(where)))

    def pack(self, kernel: NumpyArray, width: int, dtype: DType) -> NumpyArray:
        """The kernel as panels, by group."""
        dims = self.op.dimensions
        order = (dims.kernel_output_feature, *dims.kernel_spatial, dims.kernel_input_feature)
        turned = kernel.transpose(order)
        turned = np.pad(turned, [(0, 0)] * (turned.ndim - 1) + [(0, self.extra_features)])
        flat = turned.reshape(self.groups, self.columns, -1)
        return pack_panels(flat.transpose(0, 2, 1), width, dtype, self.group)
