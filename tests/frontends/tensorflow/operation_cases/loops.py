"""Control flow, of TensorFlow 2 and lowered to that of TensorFlow 1."""

import numpy as np

import tensorflow as tf
from tests.frontends.tensorflow.operation_cases import RAW, case, f, gradient


def collatz(n: tf.Tensor) -> list[tf.Tensor]:
    steps = tf.constant(0)
    while n > 1:
        n = tf.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    return [n, steps]


def branches(x: tf.Tensor, k: tf.Tensor) -> list[tf.Tensor]:
    y = tf.reduce_sum(x) * 0.0 + 2.0
    first = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * y, lambda: x - y)
    return [first, tf.switch_case(k, [lambda: x + 1.0, lambda: x * 2.0, lambda: -x])]


def scan(x: tf.Tensor) -> tf.Tensor:
    return tf.scan(lambda a, c: a * 0.5 + c, x)


def mapped(x: tf.Tensor) -> tf.Tensor:
    return tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)


def nested(x: tf.Tensor) -> tf.Tensor:
    total = tf.zeros(())
    for a in tf.range(3):
        row = tf.zeros(())
        for b in tf.range(4):
            row += x[a, b]
        total += row * tf.cast(a + 1, tf.float32)
    return total


for _v1 in (False, True):
    _suffix = "_v1" if _v1 else ""
    case(f"while{_suffix}", collatz, np.array(27, np.int32), v1=_v1)
    case(f"branches{_suffix}", branches, f(3), np.array(1, np.int32), v1=_v1)
    case(f"branches_other{_suffix}", branches, -np.abs(f(3)), np.array(7, np.int32), v1=_v1)
    case(f"scan{_suffix}", scan, f(5, 2), v1=_v1)
    case(f"mapped{_suffix}", mapped, f(4, 3), v1=_v1)
    case(f"nested{_suffix}", nested, f(3, 4), v1=_v1)
gradient(
    "gradient_while", lambda x: tf.while_loop(lambda k, y: k < 3, lambda k, y: (k + 1, y * x + 1.0), (0, x))[1], f(3)
)
gradient(
    "gradient_long_loop",
    lambda x: tf.while_loop(
        lambda k, y: k < 90, lambda k, y: (k + 1, tf.tanh(y * x) + y), (0, x), maximum_iterations=100
    )[1],
    f(3),
)
gradient("gradient_scan", lambda x: tf.scan(lambda a, c: tf.tanh(a * 0.5 + c), x), f(70, 2))
gradient("gradient_cond", lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * x, lambda: tf.sin(x)), f(3))


def growing(x: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(
        lambda k, y: k < 3,
        lambda k, y: (k + 1, tf.concat([y, y[:1] * 2.0], 0)),
        (0, x),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
    )[1]


def array_of_tensorflow_1(x: tf.Tensor) -> tf.Tensor:
    """A loop over TensorArrays as TensorFlow 1 makes it."""
    size = 4
    handle, flow = RAW.TensorArrayV3(size=size, dtype=tf.float32, element_shape=(3,))
    flow = RAW.TensorArrayScatterV3(handle=handle, indices=tf.range(size), value=x, flow_in=flow)
    result, result_flow = RAW.TensorArrayV3(size=size, dtype=tf.float32)
    state = tf.zeros(3)
    for k in range(size):
        state = state * 0.5 + RAW.TensorArrayReadV3(handle=handle, index=k, flow_in=flow, dtype=tf.float32)
        result_flow = RAW.TensorArrayWriteV3(handle=result, index=k, value=state, flow_in=result_flow)
    return RAW.TensorArrayGatherV3(handle=result, indices=tf.range(size), flow_in=result_flow, dtype=tf.float32)


case("tensor_array", array_of_tensorflow_1, f(4, 3))
case("growing_loop", growing, f(2))
