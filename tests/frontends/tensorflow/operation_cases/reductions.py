"""Reductions, running sums, segments."""

import tensorflow as tf
from tests.frontends.tensorflow.operation_cases import X, case, f, gradient, i

case(
    "reductions",
    lambda x: [
        tf.reduce_sum(x, 1),
        tf.reduce_mean(x, (0, -1), keepdims=True),
        tf.reduce_prod(x, 2),
        tf.reduce_max(x),
        tf.reduce_min(x, -1),
        tf.reduce_all(x > -2, 1),
        tf.reduce_any(x > 1, 0),
        tf.norm(x, axis=1),
        tf.math.reduce_euclidean_norm(x, 1),
        tf.math.reduce_variance(x, 0),
        tf.math.reduce_logsumexp(x, 1),
    ],
    X,
)
case("integer_mean", lambda x: tf.reduce_mean(x, 0), i(-9, 9, 4, 5))
case("positions", lambda x: [tf.argmax(x, 1), tf.argmin(x, -1, tf.int32), tf.argmax(x, 0, tf.int32)], X)
case(
    "cumulative",
    lambda x: [
        tf.cumsum(x, 1),
        tf.cumsum(x, 0, exclusive=True, reverse=True),
        tf.math.cumprod(x, 2, reverse=True),
    ],
    X,
)
gradient("gradient_reductions", lambda x: tf.reduce_mean(x, 1) + tf.reduce_max(x, 1) + tf.reduce_sum(x * x, 1), f(3, 4))
gradient("gradient_prod", lambda x: tf.reduce_prod(x, 1), f(3, 4))
case(
    "segments",
    lambda x, ids: [
        tf.math.unsorted_segment_sum(x, ids, 4),
        tf.math.unsorted_segment_max(x, ids, 4),
        tf.math.unsorted_segment_mean(x, ids, 4),
        tf.math.segment_sum(x, [0, 0, 1, 3, 3]),
        tf.math.segment_max(x, [0, 0, 1, 1, 2]),
        tf.math.segment_mean(x, [0, 0, 1, 1, 2]),
    ],
    f(5, 3),
    i(-1, 4, 5),
)
