"""Gather and scatter, the largest, counting."""

import numpy as np

import tensorflow as tf
from tests.frontends.tensorflow.operation_cases import RAW, case, f, gradient, i

case(
    "gather",
    lambda x, k: [tf.gather(x, k), tf.gather(x, k, axis=2), tf.gather(x, [2, 0], axis=1), tf.gather_nd(x, k[:, :2])],
    f(3, 3, 3),
    i(0, 3, 4, 3),
)
case(
    "gather_batched",
    lambda x, k: [
        tf.gather(x, k, batch_dims=1),
        tf.gather(x, k, axis=2, batch_dims=1),
        tf.gather(x, k[:, 0], axis=1, batch_dims=1),
    ],
    f(2, 3, 4),
    i(0, 3, 2, 5),
)
case(
    "scatter",
    lambda x, k, u: [
        tf.scatter_nd(k, u, (5, 3)),
        tf.tensor_scatter_nd_add(x, k, u),
        tf.tensor_scatter_nd_update(x, k[:1], u[:1]),
        tf.tensor_scatter_nd_max(x, k, u),
        tf.tensor_scatter_nd_sub(x, k, u),
    ],
    f(5, 3),
    i(0, 5, 4, 1),
    f(4, 3),
)
gradient("gradient_gather", lambda x, k: tf.gather(x, k), f(5, 3), i(0, 5, 6))
gradient("gradient_gather_nd", lambda x, k: tf.gather_nd(x, k), f(5, 3), i(0, 3, 6, 2))
case("top_k", lambda x: [*tf.math.top_k(x, 3), tf.sort(x, direction="DESCENDING"), tf.argsort(x)], f(4, 7))
case("in_top_k", lambda p, t: tf.math.in_top_k(t, p, 2), f(5, 4), i(0, 4, 5))
case("bincount", lambda x: RAW.DenseBincount(input=x, size=6, weights=np.zeros(0, np.float32)), i(0, 6, 20))
case("folded_where", lambda x: x * tf.cast(tf.size(tf.where(tf.constant([1, 0, 2]))), tf.float32), f(3))
