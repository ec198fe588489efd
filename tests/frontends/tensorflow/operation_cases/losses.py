"""Losses and random numbers."""

import numpy as np

import tensorflow as tf
from tests.frontends.tensorflow.operation_cases import RAW, case, f, gradient, i

gradient(
    "softmax_cross_entropy",
    lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(tf.reverse(x, [1]) * 2) * 0 + 0.2, x),
    f(4, 5),
)
case(
    "sparse_cross_entropy",
    lambda x, y: RAW.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y),
    f(4, 5),
    i(0, 5, 4),
)
gradient(
    "sigmoid_cross_entropy", lambda x, y: tf.nn.sigmoid_cross_entropy_with_logits(y * 0 + 0.3, x), f(4, 5), f(4, 5)
)
case(
    "stateless_random",
    lambda s: [
        tf.random.stateless_uniform((3, 5), s),
        tf.random.stateless_normal((7,), s),
        tf.random.stateless_uniform((9,), s, 3, 17, tf.int32),
        tf.random.stateless_uniform((4,), s, -5, 1 << 40, tf.int64),
        tf.random.stateless_uniform((4,), s, dtype=tf.float64),
    ],
    np.array([3, -9], np.int32),
)
case(
    "seeded_random",
    lambda x: [
        RAW.RandomUniform(shape=(3, 4), dtype=tf.float32, seed=5, seed2=9) + x,
        RAW.RandomStandardNormal(shape=(5,), dtype=tf.float32, seed=1, seed2=2),
    ],
    np.zeros((), np.float32),
)
case(
    "truncated_random",
    lambda s: [
        tf.random.stateless_truncated_normal((5, 7), s),
        tf.random.stateless_truncated_normal((1000,), s, 2.0, 0.5),
        RAW.TruncatedNormal(shape=(6,), dtype=tf.float32, seed=5, seed2=9),
    ],
    np.array([3, -9], np.int32),
)
