"""Sums of products: dot and convolution."""

from dataclasses import dataclass

from onnxla.hlo.attributes import INT, INTS, spelled_by
from onnxla.hlo.op import Op, attribute, from_result, require, require_tensor
from onnxla.hlo.ops.shape import require_dimensions
from onnxla.hlo.types import ElementType, Shape, TensorType
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
