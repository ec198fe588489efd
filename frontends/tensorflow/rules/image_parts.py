"""Colours and parts of images: hue, saturation, contrast, crops, patches."""

from onnxla.frontends.tensorflow.axes import require_enumerable
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, S64, TensorType

MOST_PATCHES = 4096
"""Places in a window that is taken apart."""

_Channels = tuple[Instruction, Instruction, Instruction]


def _channels(node: NodeView, b: Builder, x: Instruction) -> _Channels:
    """Red, green and blue (or hue, saturation and value), without their dimension."""
    if not x.shape or x.shape[-1] != 3:
        node.shape_error(f"{x.tensor_type} has no three colours in its last dimension")
    last = len(x.shape) - 1
    parts = []
    for c in range(3):
        part = b.slice(x, [0] * last + [c], [*x.shape[:-1], c + 1])
        parts.append(b.reshape(part, x.shape[:-1]))
    return parts[0], parts[1], parts[2]


def _joined(b: Builder, parts: _Channels) -> Instruction:
    shape = parts[0].shape
    return b.concatenate([b.reshape(p, (*shape, 1)) for p in parts], len(shape))


def _limited(b: Builder, x: Instruction) -> Instruction:
    """Between 0 and 1."""
    element = x.tensor_type.element
    return b.clamp(b.constant(0, element), x, b.constant(1, element))


def _hsv(b: Builder, rgb: _Channels) -> _Channels:
    """Hue, saturation and value, each from 0 to 1."""
    red, green, blue = rgb
    value = b.maximum(b.maximum(red, green), blue)
    spread = b.subtract(value, b.minimum(b.minimum(red, green), blue))
    zero = b.full_like(value, 0)
    saturation = b.select(b.compare(value, zero, "GT"), b.divide(spread, value), zero)
    sixth = b.divide(b.full_like(value, 1), b.multiply(spread, b.full_like(value, 6)))

    def from_colour(first: Instruction, second: Instruction, turn: float) -> Instruction:
        return b.add(b.multiply(sixth, b.subtract(first, second)), b.full_like(value, turn))

    of_others = b.select(b.compare(green, value, "EQ"), from_colour(blue, red, 2 / 6), from_colour(red, green, 4 / 6))
    hue = b.select(b.compare(red, value, "EQ"), b.multiply(sixth, b.subtract(green, blue)), of_others)
    hue = b.select(b.compare(spread, zero, "GT"), hue, zero)
    hue = b.select(b.compare(hue, zero, "LT"), b.add(hue, b.full_like(hue, 1)), hue)
    return hue, saturation, value


def _rgb(b: Builder, hsv: _Channels) -> _Channels:
    """The inverse."""
    hue, saturation, value = hsv
    place = b.multiply(hue, b.full_like(hue, 6))

    def distance(centre: float) -> Instruction:
        return b.unary("abs", b.subtract(place, b.full_like(place, centre)))

    ones, twos = b.full_like(hue, 1), b.full_like(hue, 2)
    red = _limited(b, b.subtract(distance(3), ones))
    green, blue = (_limited(b, b.subtract(twos, distance(c))) for c in (2, 4))

    def shade(part: Instruction) -> Instruction:
        return b.multiply(b.add(b.subtract(ones, saturation), b.multiply(saturation, part)), value)

    return shade(red), shade(green), shade(blue)


@tf_op("RGBToHSV")
def rgb_to_hsv(node: NodeView, b: Builder) -> Instruction:
    return _joined(b, _hsv(b, _channels(node, b, node.input(0))))


@tf_op("HSVToRGB")
def hsv_to_rgb(node: NodeView, b: Builder) -> Instruction:
    return _joined(b, _rgb(b, _channels(node, b, node.input(0))))


@tf_op("AdjustSaturation")
def adjust_saturation(node: NodeView, b: Builder) -> Instruction:
    """Times a factor, limited."""
    x = b.convert(node.input(0), F32)
    hue, saturation, value = _hsv(b, _channels(node, b, x))
    factor = b.broadcast_scalar(b.reshape(b.convert(node.input(1), F32), ()), hue.shape)
    changed = _joined(b, _rgb(b, (hue, _limited(b, b.multiply(saturation, factor)), value)))
    return b.convert(changed, node.input(0).tensor_type.element)


@tf_op("AdjustHue")
def adjust_hue(node: NodeView, b: Builder) -> Instruction:
    """Turned by a part of the circle."""
    x = b.convert(node.input(0), F32)
    hue, saturation, value = _hsv(b, _channels(node, b, x))
    turned = b.add(hue, b.broadcast_scalar(b.reshape(b.convert(node.input(1), F32), ()), hue.shape))
    turned = b.subtract(turned, b.unary("floor", turned))
    return b.convert(_joined(b, _rgb(b, (turned, saturation, value))), node.input(0).tensor_type.element)


@tf_op("AdjustContrastv2")
def adjust_contrast(node: NodeView, b: Builder) -> Instruction:
    """Differences from the mean of each image and channel, times a factor."""
    x = b.convert(node.input(0), F32)
    rank = len(x.shape)
    if rank < 3:
        node.shape_error(f"{x.tensor_type} is no image")
    sums = b.reduce_by("add", x, [rank - 3, rank - 2])
    count = b.full_like(sums, x.shape[-3] * x.shape[-2])
    mean = b.broadcast(b.divide(sums, count), x.shape, [*range(rank - 3), rank - 1])
    factor = b.broadcast_scalar(b.reshape(b.convert(node.input(1), F32), ()), x.shape)
    changed = b.add(b.multiply(b.subtract(x, mean), factor), mean)
    return b.convert(changed, node.input(0).tensor_type.element)


@tf_op("ExtractImagePatches")
def extract_image_patches(node: NodeView, b: Builder) -> Instruction:
    """At each place of a window all it holds, as channels: rows, columns, channels."""
    x = node.input(0)
    sizes, strides, rates = node.ints("ksizes"), node.ints("strides"), node.ints("rates")
    if len(x.shape) != 4 or any(len(v) != 4 or v[0] != 1 or v[3] != 1 or min(v) < 1 for v in (sizes, strides, rates)):
        node.shape_error(f"windows {list(sizes)} do not fit {x.tensor_type}")
    require_enumerable(node, sizes[1] * sizes[2], MOST_PATCHES)
    same = node.string("padding") == "SAME"
    low, high, places = [0] * 4, [0] * 4, [0] * 4
    for d in (1, 2):
        span = (sizes[d] - 1) * rates[d] + 1
        if same:
            places[d] = -(-x.shape[d] // strides[d])
            missing = max((places[d] - 1) * strides[d] + span - x.shape[d], 0)
            low[d], high[d] = missing // 2, missing - missing // 2
        else:
            places[d] = max(0, (x.shape[d] - span) // strides[d] + 1)
    padded = b.pad(x, b.constant(0, x.tensor_type.element), low, high)
    if 0 in (places[1], places[2]):
        return b.full((x.shape[0], places[1], places[2], sizes[1] * sizes[2] * x.shape[3]), 0, x.tensor_type.element)
    parts = []
    for i in range(sizes[1]):
        for j in range(sizes[2]):
            top, left = i * rates[1], j * rates[2]
            bottom, right = top + (places[1] - 1) * strides[1] + 1, left + (places[2] - 1) * strides[2] + 1
            limits = (x.shape[0], bottom, right, x.shape[3])
            parts.append(b.slice(padded, (0, top, left, 0), limits, (1, strides[1], strides[2], 1)))
    return b.concatenate(parts, 3)


@tf_op("CropAndResize")
def crop_and_resize(node: NodeView, b: Builder) -> Instruction:
    """Boxes of images, each resized; what lies outside of the image has one value. Images that there are not give 0."""
    images, boxes, numbers = b.convert(node.input(0), F32), node.input(1), node.input(2)
    sizes = node.constant_ints(3)
    if len(images.shape) != 4 or len(boxes.shape) != 2 or boxes.shape[1] != 4 or len(sizes) != 2:
        node.shape_error(f"boxes {boxes.tensor_type} of {images.tensor_type}, resized to {list(sizes)}")
    batch, height, width, channels = images.shape
    count = boxes.shape[0]
    method = node.string("method", "bilinear")
    if method not in ("bilinear", "nearest"):
        node.unsupported(f"method={method!r}", "bilinear and nearest are supported")
    shape = (count, sizes[0], sizes[1])

    def places(first: int, size: int, output: int) -> Instruction:
        """Where each position lies along one side: [count, output]."""
        low, high = (b.reshape(b.slice(boxes, [0, c], [count, c + 1]), (count,)) for c in (first, first + 2))
        last = b.full_like(low, size - 1)
        if output <= 1:
            middle = b.multiply(b.multiply(b.add(low, high), b.full_like(low, 0.5)), last)
            return b.broadcast(middle, (count, output), (0,))
        scale = b.divide(b.multiply(b.subtract(high, low), last), b.full_like(low, output - 1))
        steps = b.iota(TensorType(F32, (count, output)), 1)
        moved = b.multiply(steps, b.broadcast(scale, (count, output), (0,)))
        return b.add(b.broadcast(b.multiply(low, last), (count, output), (0,)), moved)

    ys = b.broadcast(places(0, height, sizes[0]), shape, (0, 1))
    xs = b.broadcast(places(1, width, sizes[1]), shape, (0, 2))
    flat = b.reshape(images, (batch * height * width, channels))
    image = b.broadcast(b.convert(numbers, S64), shape, (0,))

    def pixel(y: Instruction, x: Instruction) -> Instruction:
        """[count, rows, columns, channels]"""
        row, column = b.convert(y, S64), b.convert(x, S64)
        place = b.add(b.multiply(image, b.full_like(image, height)), row)
        return b.take(flat, b.add(b.multiply(place, b.full_like(place, width)), column), 0)

    def wide(x: Instruction) -> Instruction:
        return b.broadcast(x, (*shape, channels), (0, 1, 2))

    if method == "nearest":
        found = pixel(b.unary("round-nearest-afz", ys), b.unary("round-nearest-afz", xs))
    else:
        top, left = b.unary("floor", ys), b.unary("floor", xs)
        bottom, right = b.unary("ceil", ys), b.unary("ceil", xs)
        down, across = wide(b.subtract(ys, top)), wide(b.subtract(xs, left))

        def between(first: Instruction, second: Instruction, weight: Instruction) -> Instruction:
            return b.add(first, b.multiply(b.subtract(second, first), weight))

        upper = between(pixel(top, left), pixel(top, right), across)
        lower = between(pixel(bottom, left), pixel(bottom, right), across)
        found = between(upper, lower, down)
    inside = _between_all(b, [(ys, height - 1), (xs, width - 1)])
    outside = b.full_like(found, node.float("extrapolation_value", 0.0))
    found = b.select(wide(inside), found, outside)
    zero = b.full_like(image, 0)
    exists = b.and_(b.compare(image, zero, "GE"), b.compare(image, b.full_like(image, batch), "LT"))
    return b.select(wide(exists), found, b.full_like(found, 0))


def _between_all(b: Builder, sides: list[tuple[Instruction, int]]) -> Instruction:
    tests = [
        test
        for place, last in sides
        for test in (b.compare(place, b.full_like(place, 0), "GE"), b.compare(place, b.full_like(place, last), "LE"))
    ]
    result = tests[0]
    for test in tests[1:]:
        result = b.and_(result, test)
    return result
