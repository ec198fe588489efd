"""Reshaping, joining, repeating, padding, slicing, diagonals."""

import numpy as np

import tensorflow as tf
from tests.frontends.tensorflow.operation_cases import X, case, f, gradient, i

case("shapes", lambda x: [tf.shape(x), tf.size(x), tf.rank(x), tf.shape(x, tf.int64)], X)
case(
    "reshaping",
    lambda x: [
        tf.reshape(x, (4, -1)),
        tf.expand_dims(x, -2),
        tf.squeeze(tf.expand_dims(x, 0)),
        tf.transpose(x, (2, 0, 1)),
        tf.squeeze(x[:, :1], 1),
        tf.reshape(x, (-1, tf.shape(x)[2])),
    ],
    X,
)
case(
    "joining",
    lambda x, y: [
        tf.concat([x, y], 1),
        tf.stack([x, x], -1),
        *tf.unstack(x, axis=1),
        *tf.split(x, 2, -1),
        *tf.split(y, [1, 2, -1], 1),
    ],
    f(2, 3, 4),
    f(2, 5, 4),
)
gradient(
    "gradient_joining",
    lambda x, y: tf.concat([x, tf.split(y, [1, 4], 1)[1], tf.tile(x, [1, 2, 1])], 1),
    f(2, 3, 4),
    f(2, 5, 4),
)
case(
    "repeating",
    lambda x: [
        tf.tile(x, [2, 1, 3]),
        tf.broadcast_to(x, (2, 2, 3, 4)),
        tf.fill((2, 3), x[0, 0, 0]),
        tf.zeros_like(x),
        tf.ones_like(x),
    ],
    X,
)
case(
    "ranges",
    lambda x: [tf.range(3, 20, 4) + tf.cast(tf.size(x), tf.int32), tf.linspace(0.0, 1.0, 5), tf.range(tf.shape(x)[1])],
    X,
)
case(
    "padding",
    lambda x: [
        tf.pad(x, [[0, 0], [1, 2], [3, 0]]),
        tf.pad(x, [[0, 0], [1, 2], [3, 0]], constant_values=2.5),
        tf.pad(x, [[0, 0], [1, 2], [3, 0]], "REFLECT"),
        tf.pad(x, [[1, 2], [0, 0], [3, 4]], "SYMMETRIC"),
    ],
    X,
)
gradient("gradient_padding", lambda x: tf.pad(x, [[0, 0], [1, 2], [3, 0]], "REFLECT"), X)
gradient("gradient_symmetric_padding", lambda x: tf.pad(x, [[1, 2], [0, 0], [3, 4]], "SYMMETRIC"), X)
case(
    "reversing",
    lambda x: [
        tf.reverse(x, [0, -1]),
        tf.roll(x, [1, -2], [0, 2]),
        tf.reverse_sequence(x, [1, 3], seq_axis=1, batch_axis=0),
    ],
    X,
)
case(
    "slices",
    lambda x: [
        x[1, :, 2],
        x[..., 1:3],
        x[:, ::2, ::-1],
        x[:, tf.newaxis, 1:],
        x[-1:, -2:, 3:0:-2],
        x[..., tf.newaxis, 0],
        tf.slice(x, [0, 1, 2], [1, -1, 2]),
        x[0:0],
        x[:, 2::-1],
    ],
    X,
)
case("dynamic_slices", lambda x, k: [x[k], x[:, k, 1:3], tf.slice(x, [0, k, 0], [2, 2, 4])], X, np.array(1, np.int32))
gradient(
    "gradient_slices", lambda x: tf.reduce_sum(x[:, ::2, ::-1], 0) * x[1, 2, 3] + x[-1, 0:2, tf.newaxis, :][:, 0], X
)
case(
    "one_hot",
    lambda x: [tf.one_hot(x, 4), tf.one_hot(x, 3, 2.0, -1.0, axis=0), tf.one_hot(x, 3, True, False)],
    i(-1, 4, 2, 3),
)
case(
    "diagonals",
    lambda x, v: [
        tf.linalg.band_part(x, 1, 0),
        tf.linalg.band_part(x, -1, 1),
        tf.linalg.diag(v),
        tf.linalg.diag(v, k=1),
        tf.linalg.diag_part(x),
        tf.linalg.diag_part(x, k=-1),
        tf.linalg.set_diag(x, v),
        tf.linalg.diag(v, k=-2),
    ],
    f(2, 3, 4),
    f(2, 3),
)
