"""Random numbers, TensorFlow's own: `Stateless...` from a seed that is an operand, others from seeds in the graph and a
counter that moves on with every run, which is part of the model's state."""

import zlib
from collections.abc import Callable, Sequence

import numpy as np

from onnxla.frontends.tensorflow.effects import counter_name
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.philox import (
    Generator,
    generator_of_seed,
    integers,
    joined,
    normal,
    truncated_normal,
    uniform,
    words,
    words_of,
)
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, F64, S32, U32, U64, ElementType

PHILOX, AUTOMATIC = 1, 3
RESERVED = 256
"""Counters that TensorFlow sets aside for each number, so that rejections have room."""
_FLOAT = 1


@tf_op("StatelessRandomGetAlg")
def get_algorithm(node: NodeView, b: Builder) -> Instruction:
    return b.constant(PHILOX, S32)


@tf_op("StatelessRandomGetKeyCounter", outputs=("key", "counter"))
def get_key_counter(node: NodeView, b: Builder) -> list[Instruction]:
    generator = generator_of_seed(b, node.input(0))
    return [joined(b, generator.key), joined(b, generator.counter)]


def _of_key_and_counter(node: NodeView, b: Builder) -> Generator:
    algorithm = node.constant_int(3)
    if algorithm not in (PHILOX, AUTOMATIC):
        node.unsupported(f"the random algorithm {algorithm}", "Philox is supported")
    return Generator(words_of(b, node.input(1)), words_of(b, node.input(2)))


def _of_seed(node: NodeView, b: Builder) -> Generator:
    return generator_of_seed(b, node.input(1))


def _uniform(node: NodeView, b: Builder, generator: Generator) -> Instruction:
    element = node.element("dtype", _FLOAT)
    numbers = uniform(b, generator, node.constant_ints(0), F64 if element is F64 else F32)
    return b.convert(numbers, _required_float(node, element))


def _normal(node: NodeView, b: Builder, generator: Generator) -> Instruction:
    element = node.element("dtype", _FLOAT)
    if element is F64:
        node.unsupported("normal random numbers of float64", "float32 is supported")
    return b.convert(normal(b, generator, node.constant_ints(0)), _required_float(node, element))


def _truncated_normal(node: NodeView, b: Builder, generator: Generator) -> Instruction:
    element = node.element("dtype", _FLOAT)
    if element is F64:
        node.unsupported("truncated normal random numbers of float64", "float32 is supported")
    return b.convert(truncated_normal(b, generator, node.constant_ints(0)), _required_float(node, element))


def _required_float(node: NodeView, element: ElementType) -> ElementType:
    if not element.is_float:
        node.unsupported(f"random numbers of {element}", "floating point is supported")
    return element


def _register_stateless(name: str, make: Callable[[NodeView, Builder, Generator], Instruction]) -> None:
    @tf_op(f"Stateless{name}V2")
    def rule_v2(node: NodeView, b: Builder) -> Instruction:
        return make(node, b, _of_key_and_counter(node, b))

    @tf_op(f"Stateless{name}")
    def rule(node: NodeView, b: Builder) -> Instruction:
        return make(node, b, _of_seed(node, b))


_register_stateless("RandomUniform", _uniform)
_register_stateless("RandomNormal", _normal)
_register_stateless("TruncatedNormal", _truncated_normal)


@tf_op("StatelessRandomUniformIntV2")
def stateless_integers_v2(node: NodeView, b: Builder) -> Instruction:
    return integers(b, _of_key_and_counter(node, b), node.constant_ints(0), node.input(4), node.input(5))


@tf_op("StatelessRandomUniformInt")
def stateless_integers(node: NodeView, b: Builder) -> Instruction:
    return integers(b, _of_seed(node, b), node.constant_ints(0), node.input(2), node.input(3))


@tf_op("StatelessRandomUniformFullIntV2")
def stateless_full_integers(node: NodeView, b: Builder) -> Instruction:
    """Any number of the type: 32 bits."""
    element = node.element("dtype")
    if element not in (S32, U32):
        node.unsupported(f"random bits of {element}", "int32 and uint32 are supported")
    shape = node.constant_ints(0)
    bits = words(b, _of_key_and_counter(node, b), int(np.prod(shape)))
    return b.reshape(b.convert(bits, element), shape)


def _counted(node: NodeView, b: Builder, shape: Sequence[int]) -> Generator:
    """The generator of the seeds in the graph, from where the run before left off.

    Without seeds TensorFlow draws some; here they come from the node's name, so that two nodes differ.
    """
    seed, seed2 = node.int("seed", 0), node.int("seed2", 0)
    if seed == 0 and seed2 == 0:
        seed = zlib.crc32(node.source.name.encode())
    state, name = node.host.state, counter_name(node.source.name)
    now = state.read(name)
    state.write(name, b.add(now, b.full_like(now, RESERVED * int(np.prod(shape)))))
    key, upper = (words_of(b, b.constant(np.array([s % (1 << 64)]), U64)) for s in (seed, seed2))
    return Generator(key, (*words_of(b, b.reshape(now, (1,))), *upper))


@tf_op("RandomUniform")
def random_uniform(node: NodeView, b: Builder) -> Instruction:
    return _uniform(node, b, _counted(node, b, node.constant_ints(0)))


@tf_op("RandomStandardNormal")
def random_normal(node: NodeView, b: Builder) -> Instruction:
    return _normal(node, b, _counted(node, b, node.constant_ints(0)))


@tf_op("TruncatedNormal")
def random_truncated_normal(node: NodeView, b: Builder) -> Instruction:
    return _truncated_normal(node, b, _counted(node, b, node.constant_ints(0)))


@tf_op("RandomUniformInt")
def random_integers(node: NodeView, b: Builder) -> Instruction:
    shape = node.constant_ints(0)
    return integers(b, _counted(node, b, shape), shape, b.reshape(node.input(1), ()), b.reshape(node.input(2), ()))
