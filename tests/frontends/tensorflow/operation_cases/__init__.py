"""Cases of TensorFlow's operations, a file a family; one generator draws all inputs, in the order of `FAMILIES`.

Imported by `make_operations.py` alone: it takes TensorFlow.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import tensorflow as tf

FAMILIES = ("elementwise", "linear", "images", "reductions", "shapes", "indexing", "mathematics", "losses", "loops")
RAW = tf.raw_ops
RNG = np.random.default_rng(7)
CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray], bool]] = {}


def f(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def i(low: int, high: int, *shape: int) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(np.int32)


def case(name: str, function: Callable[..., Any], *inputs: np.ndarray, v1: bool = False) -> None:
    """`v1` lowers control flow to TensorFlow 1's Switch, Merge, Enter, Exit."""
    CASES[name] = (function, list(inputs), v1)


def gradient(name: str, function: Callable[..., Any], *inputs: np.ndarray) -> None:
    """The function and its derivatives by all floating-point inputs."""

    def both(*xs: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            floats = [x for x in xs if x.dtype.is_floating]
            tape.watch(floats)
            y = function(*xs)
            loss = tf.reduce_sum(y * tf.reshape(tf.linspace(0.5, 1.5, tf.size(y)), tf.shape(y)))
        return [y, *map(tf.convert_to_tensor, tape.gradient(loss, floats, unconnected_gradients="zero"))]

    case(name, both, *inputs)


X, Y = f(2, 3, 4), f(3, 1)
"""What many cases take."""


def all_cases() -> dict[str, tuple[Callable[..., Any], list[np.ndarray], bool]]:
    """Function, inputs and `v1` of every case by name."""
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")
    return CASES
