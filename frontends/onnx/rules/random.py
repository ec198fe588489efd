"""Random numbers: the same ones in every run, made by the counter-based generator Threefry from a seed.

The attribute `seed` decides them. Without one the seed comes from the node's name, so that two nodes
differ and compiling the model again changes nothing. The generator is written in elementwise
operations (Salmon and others 2011, Threefry 2x32 with 20 rounds), which fold or fuse like any others.
"""

import math
import zlib
from collections.abc import Sequence

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.precision import wide_element
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, F64, S32, U32, U64, ElementType, TensorType

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
EXPONENT_OF_ONE = {F32: 0x3F800000, F64: 0x3FF0000000000000}


def _keys(node: NodeView, stream: int) -> tuple[int, int]:
    """The generator's key for the node's seed, and the number of a stream of its own."""
    seed = node.float("seed", None)
    return zlib.crc32(node.source.name.encode() if seed is None else np.float32(seed).tobytes()), stream


def threefry(b: Builder, keys: tuple[int, int], count: int) -> tuple[Instruction, Instruction]:
    """Two random words u32 [count] for each of the counters 0, 1, ..."""
    schedule = (*keys, keys[0] ^ keys[1] ^ PARITY)
    first = b.iota(TensorType(U32, (count,)), 0)

    def plus(x: Instruction, number: int) -> Instruction:
        return b.add(x, b.full_like(x, number % (1 << 32)))

    first, second = plus(first, schedule[0]), b.full_like(first, schedule[1])
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            first = b.add(first, second)
            left = b.binary("shift-left", second, b.full_like(second, distance))
            right = b.binary("shift-right-logical", second, b.full_like(second, 32 - distance))
            second = b.xor(b.or_(left, right), first)
        first = plus(first, schedule[(group + 1) % 3])
        second = plus(second, schedule[(group + 2) % 3] + group + 1)
    return first, second


def uniform(node: NodeView, b: Builder, shape: Sequence[int], element: ElementType, stream: int = 0) -> Instruction:
    """Numbers from 0 (included) to 1 (excluded), f32 or f64: random mantissas of numbers in [1, 2), minus 1."""
    bits, other = threefry(b, _keys(node, stream), math.prod(shape))
    mantissa = 23
    if element is F64:
        wide = b.convert(bits, U64)
        bits, mantissa = b.or_(b.binary("shift-left", wide, b.full_like(wide, 32)), b.convert(other, U64)), 52
    width = bits.tensor_type.element.bits
    fraction = b.binary("shift-right-logical", bits, b.full_like(bits, width - mantissa))
    number = b.or_(fraction, b.full_like(bits, EXPONENT_OF_ONE[element]))
    ones = b.bitcast_convert(number, number.tensor_type.with_element(element))
    return b.reshape(b.subtract(ones, b.full_like(ones, 1)), shape)


def normal(node: NodeView, b: Builder, shape: Sequence[int], element: ElementType) -> Instruction:
    """Normally distributed numbers by the method of Box and Muller."""
    radius, angle = (uniform(node, b, shape, element, stream) for stream in (0, 1))
    log = b.unary("log", b.subtract(b.full_like(radius, 1), radius))
    length = b.unary("sqrt", b.multiply(log, b.full_like(log, -2)))
    return b.multiply(length, b.unary("cosine", b.multiply(angle, b.full_like(angle, 2 * math.pi))))


def _like(node: NodeView) -> tuple[Sequence[int], ElementType]:
    element = node.element("dtype") if node.has("dtype") else None
    x = node.input(0).tensor_type
    return x.shape, element or x.element


def _given(node: NodeView) -> tuple[Sequence[int], ElementType]:
    return node.ints("shape"), node.element("dtype", F32)


def _random_uniform(node: NodeView, b: Builder, shape: Sequence[int], element: ElementType) -> Instruction:
    low, high = node.float("low", 0.0), node.float("high", 1.0)
    numbers = uniform(node, b, shape, wide_element(element))
    stretched = b.add(b.multiply(numbers, b.full_like(numbers, high - low)), b.full_like(numbers, low))
    return b.convert(stretched, element)


def _random_normal(node: NodeView, b: Builder, shape: Sequence[int], element: ElementType) -> Instruction:
    numbers = normal(node, b, shape, wide_element(element))
    scaled = b.multiply(numbers, b.full_like(numbers, node.float("scale", 1.0)))
    return b.convert(b.add(scaled, b.full_like(scaled, node.float("mean", 0.0))), element)


@onnx_op("RandomUniform")
def random_uniform(node: NodeView, b: Builder) -> Instruction:
    return _random_uniform(node, b, *_given(node))


@onnx_op("RandomUniformLike")
def random_uniform_like(node: NodeView, b: Builder) -> Instruction:
    return _random_uniform(node, b, *_like(node))


@onnx_op("RandomNormal")
def random_normal(node: NodeView, b: Builder) -> Instruction:
    return _random_normal(node, b, *_given(node))


@onnx_op("RandomNormalLike")
def random_normal_like(node: NodeView, b: Builder) -> Instruction:
    return _random_normal(node, b, *_like(node))


@onnx_op("Bernoulli", since=15)
def bernoulli(node: NodeView, b: Builder) -> Instruction:
    """1 with the probability that the input holds, else 0."""
    _, element = _like(node)
    p = node.input(0)
    wide = wide_element(p.tensor_type.element)
    drawn = b.compare(uniform(node, b, p.shape, wide), b.convert(p, wide), "LT")
    return b.convert(drawn, element)


@onnx_op("Multinomial", since=7)
def multinomial(node: NodeView, b: Builder) -> Instruction:
    """[batch, sample_size]: classes drawn by unnormalised log-probabilities, by inverting their running sum."""
    element, samples = node.element("dtype", S32), node.int("sample_size", 1)
    given = node.input(0)
    logits = b.convert(given, F32)
    if len(logits.shape) != 2:
        node.shape_error(f"{given.tensor_type} is not [batch, classes]")
    batch, classes = logits.shape
    node.require_table(classes * classes)
    largest = b.broadcast(b.reduce_by("maximum", logits, [1]), logits.shape, [0])
    weights = b.exponential(b.subtract(logits, largest))
    running = b.dot(weights, b.constant(np.triu(np.ones((classes, classes), np.float32))), [1], [0])
    shape = (batch, samples, classes)
    total = b.reshape(b.slice(running, [0, classes - 1], [batch, classes]), (batch,))
    drawn = b.multiply(uniform(node, b, (batch, samples), F32), b.broadcast(total, (batch, samples), [0]))
    passed = b.compare(b.broadcast(running, shape, [0, 2]), b.broadcast(drawn, shape, [0, 1]), "LE")
    index = b.reduce_by("add", b.convert(passed, S32), [2])
    index = b.minimum(index, b.full_like(index, classes - 1))
    return b.convert(index, element)
