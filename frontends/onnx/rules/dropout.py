"""Dropout: nothing at inference; in training mode elements are dropped at random, the same ones in every run."""

import zlib

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.precision import widen
from onnxla.frontends.onnx.rules.random import threefry
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import PRED

WORDS = 1 << 32
"""How many values a random word takes."""


@onnx_op("Dropout", until=11)
def dropout_of_inference(node: NodeView, b: Builder) -> list[Instruction]:
    """Nothing is dropped. The mask is all zeros, as onnxruntime fills it; before opset 10 in the input's type."""
    x = node.input(0)
    return [x, b.full(x.shape, 0, x.tensor_type.element if node.opset < 10 else PRED)]


@onnx_op("Dropout", since=12)
def dropout(node: NodeView, b: Builder) -> list[Instruction]:
    """Nothing is dropped unless training_mode is true and the ratio is not 0. The mask tells what is kept."""
    x = node.input(0)
    training = node.optional_constant(2)
    if training is None or not training.any():
        return [x, b.full(x.shape, True, PRED)]
    given = node.optional_constant(1)
    ratio = 0.5 if given is None else float(np.asarray(given).reshape(-1)[0])
    if not 0 <= ratio < 1:
        node.shape_error(f"the ratio {ratio} is not in [0, 1)")
    if ratio == 0:
        return [x, b.full(x.shape, True, PRED)]
    return _dropped(node, b, x, ratio)


def _dropped(node: NodeView, b: Builder, x: Instruction, ratio: float) -> list[Instruction]:
    """What is kept grows by 1 / (1 - ratio), so that sums stay what they were on average."""
    seed = node.int("seed", None)
    key = zlib.crc32((node.source.name if seed is None else str(seed)).encode())
    words, _ = threefry(b, (key, 0), x.tensor_type.size)
    kept = b.reshape(b.compare(words, b.full_like(words, round(ratio * WORDS)), "GE"), x.shape)
    wide = widen(b, x)
    scaled = b.multiply(wide, b.full_like(wide, 1 / (1 - ratio)))
    return [b.convert(b.select(kept, scaled, b.full_like(wide, 0)), x.tensor_type.element), kept]
