"""GridSample: an image read at a grid of normalised places, in any number of spatial dimensions."""

import math

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.sampling import Clip, flattened, interpolate, linear_taps, pixels, zero_outside
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S32, Shape

CUBIC_A = -0.75


@onnx_op("GridSample", since=16)
def grid_sample(node: NodeView, b: Builder) -> Instruction:
    """The last dimension of the grid holds a place in -1..1 for each spatial dimension, the last one first."""
    mode = node.word("mode", ("linear", "bilinear", "nearest", "cubic", "bicubic"), "linear").removeprefix("bi")
    padding = node.word("padding_mode", ("zeros", "border", "reflection"), "zeros")
    given, grid, aligned = node.input(0), node.input(1), bool(node.int("align_corners", 0))
    sizes, rank = given.shape[2:], len(given.shape) - 2
    if rank < 1 or len(grid.shape) != rank + 2 or grid.shape[-1] != rank or grid.shape[0] != given.shape[0]:
        node.shape_error("the grid does not fit the image")
    if 0 in sizes:
        node.shape_error("an image without elements cannot be read")
    image = given if mode == "nearest" or given.tensor_type.element.is_float else b.convert(given, F32)
    image = image if mode == "nearest" else widen(b, image)
    element = image.tensor_type.element if mode != "nearest" else widen(b, grid).tensor_type.element
    clip = _clip(b, sizes, padding, aligned)
    places = []
    for d in range(rank):
        place = _place(b, b.convert(grid, element), rank - 1 - d, sizes[d], aligned)
        place = b.unary("round-nearest-even", place) if mode == "nearest" else place
        # Cubic places stay where they are: each of their taps is pulled inside on its own.
        places.append(place if mode == "cubic" else _pulled_inside(b, place, sizes[d], padding, aligned))
    if mode == "nearest":
        result = _nearest(b, flattened(b, image), places, sizes, clip)
    else:
        taps = [linear_taps(b, place) if mode == "linear" else _cubic_taps(b, place) for place in places]
        result = interpolate(b, flattened(b, image), taps, sizes, clip)
    return b.reshape(b.convert(result, given.tensor_type.element), (*given.shape[:2], *grid.shape[1:-1]))


def _place(b: Builder, grid: Instruction, column: int, size: int, aligned: bool) -> Instruction:
    """[N, P]: a column of the grid in pixels. -1 and 1 are the outer pixels' centres if `aligned`, else their edges."""
    n, points = grid.shape[0], math.prod(grid.shape[1:-1])
    flat = b.reshape(grid, (n, points, grid.shape[-1]))
    normalized = b.reshape(b.slice(flat, (0, 0, column), (n, points, column + 1)), (n, points))
    shifted = b.add(normalized, b.full_like(normalized, 1))
    if aligned:
        return b.multiply(shifted, b.full_like(shifted, (size - 1) / 2))
    scaled = b.multiply(shifted, b.full_like(shifted, size))
    return b.multiply(b.subtract(scaled, b.full_like(scaled, 1)), b.full_like(scaled, 0.5))


def _pulled_inside(b: Builder, place: Instruction, size: int, padding: str, aligned: bool) -> Instruction:
    """Places past the image moved to its border, or reflected back into it."""
    element = place.tensor_type.element
    match padding:
        case "border":
            return b.clamp(b.constant(0, element), place, b.constant(size - 1, element))
        case "reflection":
            return _reflected(b, place, size, aligned)
        case _:
            return place


def _reflected(b: Builder, place: Instruction, size: int, aligned: bool) -> Instruction:
    """Mirrored at the outer pixels' centres if `aligned`, else at their edges, until it falls inside."""
    low, length = (0.0, size - 1) if aligned else (-0.5, size)
    if length == 0:
        return b.full_like(place, 0)
    period = b.full_like(place, 2 * length)
    distance = b.unary("abs", b.subtract(place, b.full_like(place, low)))
    around = b.remainder(distance, period)
    return b.add(b.minimum(around, b.subtract(period, around)), b.full_like(place, low))


def _clip(b: Builder, sizes: Shape, padding: str, aligned: bool) -> Clip:
    """What a tap outside of the image reads."""
    if padding == "zeros":
        return zero_outside(b, sizes)
    return lambda place, d: (_pulled_inside(b, place, sizes[d], padding, aligned), None)


def _nearest(b: Builder, image: Instruction, places: list[Instruction], sizes: Shape, clip: Clip) -> Instruction:
    reads, all_count = [], None
    for d, place in enumerate(places):
        read, counts = clip(place, d)
        reads.append(b.convert(read, S32))
        if counts is not None:
            all_count = counts if all_count is None else b.and_(all_count, counts)
    pixel = pixels(b, image, reads, sizes)
    if all_count is None:
        return pixel
    return b.select(b.broadcast(all_count, pixel.shape, [0, 2]), pixel, b.full_like(pixel, 0))


def _cubic_taps(b: Builder, place: Instruction) -> list[tuple[Instruction, Instruction]]:
    """Four neighbours under the cubic convolution kernel."""
    below = b.unary("floor", place)
    fraction = b.subtract(place, below)

    def number(value: float) -> Instruction:
        return b.full_like(place, value)

    def polynomial(x: Instruction, *coefficients: float) -> Instruction:
        result = number(coefficients[0])
        for coefficient in coefficients[1:]:
            result = b.add(b.multiply(result, x), number(coefficient))
        return result

    a = CUBIC_A
    taps = []
    for offset in (-1, 0, 1, 2):
        distance = b.unary("abs", b.subtract(number(offset), fraction))
        near = polynomial(distance, a + 2, -(a + 3), 0, 1)
        far = polynomial(distance, a, -5 * a, 8 * a, -4 * a)
        taps.append((b.add(below, number(offset)), near if offset in (0, 1) else far))
    return taps
