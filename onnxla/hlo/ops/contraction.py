"""Sums of products: dot and convolution."""

import math
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.attributes import INT, INTS, spelled_by
from onnxla.hlo.numerics import narrow, widen
from onnxla.hlo.op import Op, attribute, from_result, require, require_tensor
from onnxla.hlo.ops.shape import require_dimensions
from onnxla.hlo.ops.windowing import pad_for_window, window_view
from onnxla.hlo.types import Array, ElementType, Shape, TensorType, element_of
from onnxla.hlo.window import ConvolutionDimensions, Window, WindowDimension

__all__ = ["Convolution", "ConvolutionDimensions", "Dot", "Window", "WindowDimension"]


@dataclass(frozen=True)
class Dot(Op, name="dot"):
    """Sums over the contracting dimensions. The result's dimensions: batch, then lhs free, then rhs free.

    `element` is the result's type; products are summed in it, or in f32 where it is narrower.
    """

    lhs_batch: Shape = attribute("lhs_batch_dims", INTS, absent=())
    rhs_batch: Shape = attribute("rhs_batch_dims", INTS, absent=())
    lhs_contracting: Shape = attribute("lhs_contracting_dims", INTS, absent=())
    rhs_contracting: Shape = attribute("rhs_contracting_dims", INTS, absent=())
    element: ElementType = from_result(lambda result: require_tensor(result).element)

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        require_dimensions(self.lhs_batch + self.lhs_contracting, lhs.rank, "lhs dimensions")
        require_dimensions(self.rhs_batch + self.rhs_contracting, rhs.rank, "rhs dimensions")
        for left, right, what in (
            (self.lhs_batch, self.rhs_batch, "batch"),
            (self.lhs_contracting, self.rhs_contracting, "contracting"),
        ):
            same = [lhs.shape[d] for d in left] == [rhs.shape[d] for d in right]
            require(same, f"{what} dimensions {left} of {lhs} and {right} of {rhs} differ")
        batch = [lhs.shape[d] for d in self.lhs_batch]
        left_free = [lhs.shape[d] for d in self.lhs_free(lhs.rank)]
        right_free = [rhs.shape[d] for d in self.rhs_free(rhs.rank)]
        return TensorType(self.element, tuple(batch + left_free + right_free))

    def lhs_free(self, rank: int) -> Shape:
        """Dimensions of an lhs of `rank` that are neither batch nor contracting, in order."""
        return tuple(d for d in range(rank) if d not in self.lhs_batch + self.lhs_contracting)

    def rhs_free(self, rank: int) -> Shape:
        """Dimensions of an rhs of `rank` that are neither batch nor contracting, in order."""
        return tuple(d for d in range(rank) if d not in self.rhs_batch + self.rhs_contracting)

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        left, right = for_products(lhs, rhs, self.element)
        lhs_free, rhs_free = self.lhs_free(lhs.ndim), self.rhs_free(rhs.ndim)
        left = left.transpose(self.lhs_batch + lhs_free + self.lhs_contracting)
        right = right.transpose(self.rhs_batch + self.rhs_contracting + rhs_free)
        batch = [lhs.shape[d] for d in self.lhs_batch]
        rows, columns = [lhs.shape[d] for d in lhs_free], [rhs.shape[d] for d in rhs_free]
        depth = math.prod(lhs.shape[d] for d in self.lhs_contracting)
        product = np.matmul(
            left.reshape(*batch, math.prod(rows), depth), right.reshape(*batch, depth, math.prod(columns))
        )
        return from_products(product, self.element).reshape((*batch, *rows, *columns))


def for_products(lhs: Array, rhs: Array, element: ElementType) -> tuple[Array, Array]:
    """The operands in the type that sums of their products are taken in.

    That is the result type, f32 where it is narrower; and f64, exact and fast, for integers of up
    to 16 bits (2**20 products of 32 bits stay below 2**53).
    """
    operands = (widen(lhs), widen(rhs))
    if element.is_integer and all(element_of(a.dtype).is_integer and a.dtype.itemsize <= 2 for a in operands):
        dtype = np.dtype(np.float64)
    else:
        dtype = widen(np.zeros((), element.dtype)).dtype
        if element.is_float:
            dtype = np.result_type(dtype, *operands)
    left, right = (a.astype(dtype, copy=False) for a in operands)
    return left, right


def from_products(total: Array, element: ElementType) -> Array:
    """Sums in the type that `for_products` chose as `element`: integers wrap."""
    exact = element.is_integer and total.dtype == np.float64
    return narrow(total.astype(np.int64) if exact else total, element)


@dataclass(frozen=True)
class Convolution(Op, name="convolution"):
    """A window of the kernel's size slides over the spatial dimensions of the input; the sum of products at each place.

    With `feature_group_count` g, input features are split in g groups, each seen by 1/g of the
    output features. With `batch_group_count` g, the batch is split in g groups, each seen by 1/g
    of the output features. `element` is the result's type, as for dot.
    """

    window: Window = attribute("window", spelled_by(Window), absent=Window())
    dimensions: ConvolutionDimensions = attribute("dim_labels", spelled_by(ConvolutionDimensions))
    feature_group_count: int = attribute("feature_group_count", INT, absent=1)
    batch_group_count: int = attribute("batch_group_count", INT, absent=1)
    element: ElementType = from_result(lambda result: require_tensor(result).element)

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        dims = self.dimensions
        ranks = (lhs.rank, rhs.rank, len(self.window.dimensions) + 2)
        require(ranks == (dims.rank,) * 3, f"dim_labels={dims} do not fit {lhs}, {rhs} and window={self.window}")
        self.window.check()
        kernel = tuple(rhs.shape[d] for d in dims.kernel_spatial)
        require(kernel == tuple(d.size for d in self.window.dimensions), f"window={self.window} does not fit {rhs}")
        groups, batch_groups = self.feature_group_count, self.batch_group_count
        require(groups >= 1 and batch_groups >= 1, "group counts must be positive")
        require(groups == 1 or batch_groups == 1, "feature and batch groups exclude each other")
        features, batch = lhs.shape[dims.input_feature], lhs.shape[dims.input_batch]
        outputs = rhs.shape[dims.kernel_output_feature]
        fits = rhs.shape[dims.kernel_input_feature] * groups == features
        require(fits, f"{features} input features do not fit the kernel {rhs} in {groups} groups")
        require(outputs % (groups * batch_groups) == 0, f"{outputs} output features do not divide into groups")
        require(batch % batch_groups == 0, f"batch {batch} does not divide into {batch_groups} groups")
        places = self.window.output_shape([lhs.shape[d] for d in dims.input_spatial])
        shape = dict(zip(dims.output_permutation, (batch // batch_groups, outputs, *places), strict=True))
        return TensorType(self.element, tuple(shape[d] for d in range(dims.rank)))

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        dims, window = self.dimensions, self.window
        inputs, kernel = for_products(lhs, rhs, self.element)
        groups = self.feature_group_count * self.batch_group_count
        # inputs as [group, batch, *spatial, feature], kernel as [*spatial, group, input feature, output feature]
        inputs = inputs.transpose((dims.input_batch, *dims.input_spatial, dims.input_feature))
        batch, *spatial, features = inputs.shape
        if self.batch_group_count > 1:
            inputs = inputs.reshape(groups, batch // groups, *spatial, features)
        else:
            split = inputs.reshape(batch, *spatial, groups, features // groups)
            inputs = np.moveaxis(split, -2, 0)
        kernel = kernel.transpose((*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature))
        *sizes, depth, outputs = kernel.shape
        kernel = np.moveaxis(kernel.reshape(*sizes, depth, groups, outputs // groups), -2, -3)

        padded = pad_for_window(inputs, window, 2, inputs.dtype.type(0))
        places = window.output_shape(spatial)
        rows = inputs.shape[1] * math.prod(places)
        total = np.zeros((groups, rows, outputs // groups), inputs.dtype)
        for position in np.ndindex(*sizes):
            seen = window_view(padded, window, 2, position, places).reshape(groups, rows, depth)
            total += np.matmul(seen, kernel[position])

        result = from_products(total, self.element).reshape(groups, inputs.shape[1], *places, outputs // groups)
        joined = np.moveaxis(result, 0, -2).reshape(inputs.shape[1], *places, outputs)
        ordered = (dims.output_batch, *dims.output_spatial, dims.output_feature)
        return np.array(joined.transpose(np.argsort(ordered)), order="C")
