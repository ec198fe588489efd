"""Linear algebra, Fourier transforms, quantisation; colours and parts of images; ragged rows."""

import numpy as np

import tensorflow as tf
from tests.frontends.tensorflow.operation_cases import RAW, RNG, case, f, i

POSITIVE = (lambda m: m @ m.T + 3 * np.eye(3, dtype=np.float32))(f(3, 3))
case("bucketize", lambda x: RAW.Bucketize(input=x, boundaries=[-1.0, 0.0, 0.5]), f(20))
case("cross", lambda x, y: tf.linalg.cross(x, y), f(4, 3), f(4, 3))
case(
    "cholesky",
    lambda m, y: [
        tf.linalg.cholesky(m),
        tf.linalg.triangular_solve(tf.linalg.cholesky(m), y),
        tf.linalg.triangular_solve(tf.linalg.cholesky(m), y, adjoint=True),
    ],
    POSITIVE,
    f(3, 2),
)
case(
    "fourier",
    lambda x: [
        tf.signal.rfft(x),
        tf.signal.rfft(x, [6]),
        tf.signal.rfft(x, [12]),
        tf.signal.irfft(tf.signal.rfft(x)),
        tf.math.real(tf.signal.fft(tf.cast(x, tf.complex64))),
        tf.abs(tf.signal.rfft2d(x)),
        tf.math.imag(tf.signal.ifft(tf.cast(x, tf.complex64))),
    ],
    f(3, 8),
)
case(
    "fake_quant",
    lambda x, y: [
        tf.quantization.fake_quant_with_min_max_args(x),
        tf.quantization.fake_quant_with_min_max_vars(x, -1.3, 2.1, num_bits=4),
        tf.quantization.fake_quant_with_min_max_vars_per_channel(
            x, -tf.abs(y) - 0.1, tf.abs(y) + 0.2, narrow_range=True
        ),
    ],
    f(5, 3) * 3,
    f(3),
)
case("unravel_index", lambda x: tf.unravel_index(x, [3, 4, 5]), i(0, 60, 7))

# Colours and parts of images, ragged rows, tables

case(
    "image_colours",
    lambda x: [
        tf.image.rgb_to_hsv(x),
        tf.image.hsv_to_rgb(x),
        tf.image.adjust_saturation(x, 1.7),
        tf.image.adjust_hue(x, 0.3),
        tf.image.adjust_contrast(x, 1.5),
    ],
    np.concatenate([RNG.random((2, 5, 4, 3)), np.full((2, 5, 1, 3), 0.5), np.zeros((2, 5, 1, 3))], 2).astype("f4"),
)
case(
    "image_parts",
    lambda x, boxes: [
        tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], "VALID"),
        tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
        tf.image.crop_and_resize(x, boxes, [0, 1, 1], (4, 5), extrapolation_value=7.0),
        tf.image.crop_and_resize(x, boxes, [1, 0, 1], (3, 1), "nearest"),
    ],
    f(2, 7, 6, 3),
    np.array([[0, 0, 1, 1], [0.2, 0.9, 0.8, 0.1], [-0.3, 0.1, 0.5, 1.4]], np.float32),
)


def ragged(x: tf.Tensor) -> list[tf.Tensor]:
    rows = tf.RaggedTensor.from_row_splits(x, tf.constant([0, 2, 2, 6, 9], tf.int64))
    numbered = tf.RaggedTensor.from_value_rowids(x, tf.constant([0, 0, 2, 2, 2, 3, 3, 5, 5], tf.int64), 7)
    return [
        rows.to_tensor(),
        rows.to_tensor(-1.0, shape=(5, 3, None)),
        numbered.to_tensor(),
        tf.reduce_sum(rows, 1),
        tf.reduce_max(rows, 1),
    ]


case("ragged", ragged, f(9, 3))


def ragged_in_depth(x: tf.Tensor) -> list[tf.Tensor]:
    rows = tf.RaggedTensor.from_nested_row_splits(x, [[0, 2, 3, 3], [0, 2, 2, 5]])
    thrice = tf.RaggedTensor.from_nested_row_splits(x, [[0, 1, 3], [0, 2, 2, 3], [0, 2, 2, 5]])
    return [
        rows.to_tensor(-1.0),
        rows.to_tensor(shape=(4, 1, 2, None)),
        thrice.to_tensor(),
        tf.reduce_sum(rows, axis=2).to_tensor(),
        rows.row_lengths(2).to_tensor(),
    ]


case("ragged_in_depth", ragged_in_depth, f(5, 2))
