"""Arithmetic, functions, activations and their derivatives."""

import numpy as np

import tensorflow as tf
from tests.frontends.tensorflow.operation_cases import RAW, X, Y, case, f, gradient, i

case("arithmetic", lambda x, y: [x + y, x - y, x * y, x / y, tf.maximum(x, y), tf.minimum(x, y)], X, Y)
case(
    "arithmetic_more",
    lambda x, y: [
        tf.pow(tf.abs(x), y),
        tf.math.squared_difference(x, y),
        tf.math.divide_no_nan(x, tf.nn.relu(y)),
        tf.math.multiply_no_nan(x, tf.nn.relu(y)),
        tf.atan2(x, y),
        tf.math.xlogy(tf.nn.relu(x), tf.abs(y)),
    ],
    X,
    Y,
)
case(
    "floor_division",
    lambda x, y: [x // y, x % y, tf.truncatediv(x, y), tf.truncatemod(x, y)],
    i(-20, 20, 40),
    np.where((d := i(-5, 5, 40)) == 0, 3, d).astype(np.int32),
)
case("floor_division_of_floats", lambda x, y: [x // y, x % y], f(30) * 5, f(30))
case(
    "comparison",
    lambda x, y: [x < y, x <= y, x > y, x >= y, tf.equal(x, y), tf.not_equal(x, y)],
    i(0, 3, 12),
    i(0, 3, 12),
)
case("logic", lambda x, y: [x & y, x | y, ~x, tf.math.logical_xor(x, y)], i(0, 2, 9) > 0, i(0, 2, 9) > 0)
case(
    "bits",
    lambda x, y: [
        tf.bitwise.bitwise_and(x, y),
        tf.bitwise.bitwise_or(x, y),
        tf.bitwise.bitwise_xor(x, y),
        tf.bitwise.invert(x),
        tf.bitwise.left_shift(x, y & 7),
        tf.bitwise.right_shift(x, y & 7),
    ],
    i(-100, 100, 20),
    i(0, 100, 20),
)
case(
    "functions",
    lambda x: [
        tf.exp(x),
        tf.math.expm1(x),
        tf.math.log(tf.abs(x)),
        tf.math.log1p(tf.abs(x)),
        tf.sqrt(tf.abs(x)),
        tf.math.rsqrt(tf.abs(x)),
        tf.tanh(x),
        tf.sigmoid(x),
        tf.sin(x),
        tf.cos(x),
        tf.tan(x),
        tf.math.erf(x),
        tf.math.erfc(x * 2),
        tf.atan(x),
        tf.asinh(x),
        tf.square(x),
        tf.math.reciprocal(x),
        tf.sign(x),
        tf.round(x * 3),
        tf.floor(x),
        tf.math.ceil(x),
        tf.math.rint(x * 3),
    ],
    f(50),
)
case(
    "nan_and_infinity",
    lambda x: [tf.math.is_nan(x), tf.math.is_inf(x), tf.math.is_finite(x)],
    np.array([1, np.nan, np.inf, -np.inf], np.float32),
)
case(
    "cast",
    lambda x: [tf.cast(x, tf.int32), tf.cast(x, tf.bool), tf.cast(x, tf.float16), tf.cast(x > 0, tf.float32)],
    f(20) * 9,
)
case("bitcast", lambda x: [tf.bitcast(x, tf.int32), tf.bitcast(x, tf.uint8)], f(3, 2))
case(
    "select",
    lambda c, x, y: [tf.where(c, x, y), RAW.Select(condition=c[:, 0], x=x, y=y)],
    f(3, 4) > 0,
    f(3, 4),
    f(3, 4),
)
case(
    "clip",
    lambda x: [tf.clip_by_value(x, -0.5, 0.5), tf.raw_ops.ClipByValue(t=x, clip_value_min=-1.0, clip_value_max=0.2)],
    f(20),
)
case("add_n", lambda x, y: tf.add_n([x, y, x]), f(4), f(4))
case(
    "activations",
    lambda x: [
        tf.nn.relu(x),
        tf.nn.relu6(x * 5),
        tf.nn.leaky_relu(x, 0.3),
        tf.nn.elu(x),
        tf.nn.selu(x),
        tf.nn.softplus(x * 9),
        tf.nn.softsign(x),
        tf.nn.silu(x),
        tf.nn.gelu(x),
        tf.nn.gelu(x, approximate=True),
        tf.nn.softmax(x),
        tf.nn.log_softmax(x),
        tf.nn.l2_loss(x),
    ],
    f(4, 9),
)
for _name, _function in {
    "relu": tf.nn.relu,
    "relu6": lambda x: tf.nn.relu6(x * 5),
    "leaky": lambda x: tf.nn.leaky_relu(x, 0.3),
    "elu": tf.nn.elu,
    "selu": tf.nn.selu,
    "softplus": tf.nn.softplus,
    "softsign": tf.nn.softsign,
    "gelu": tf.nn.gelu,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "sqrt": lambda x: tf.sqrt(tf.abs(x)),
    "rsqrt": lambda x: tf.math.rsqrt(tf.abs(x)),
    "reciprocal": tf.math.reciprocal,
    "softmax": tf.nn.softmax,
    "log_softmax": tf.nn.log_softmax,
}.items():
    gradient(f"gradient_{_name}", _function, f(3, 7))
