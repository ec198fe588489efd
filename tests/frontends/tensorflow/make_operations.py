"""Makes `operations/*.npz`: for each case a frozen GraphDef with TensorFlow's own inputs and outputs.

Run by hand, in an environment with TensorFlow (2.21 made what is here):

    python tests/frontends/tensorflow/make_operations.py [NAME ...]
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

FOLDER = Path(__file__).parent / "operations"
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


# Elementwise

X, Y = f(2, 3, 4), f(3, 1)
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

# Linear

case(
    "matmul",
    lambda x, y: [tf.matmul(x, y), tf.matmul(x, x, transpose_a=True), tf.matmul(y, y, transpose_b=True)],
    f(4, 5),
    f(5, 3),
)
case(
    "batch_matmul",
    lambda x, y: [tf.matmul(x, y), tf.matmul(x, tf.transpose(y, (0, 2, 1)), transpose_b=True)],
    f(2, 3, 4, 5),
    f(3, 5, 2),
)
gradient("gradient_matmul", tf.matmul, f(4, 5), f(5, 3))
gradient("gradient_batch_matmul", tf.matmul, f(2, 4, 5), f(2, 5, 3))
for _n, (_equation, _a, _b) in enumerate(
    [("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)), ("...ij,jk->...ik", (2, 3, 4), (4, 5))]
):
    gradient(f"einsum_{_n}", lambda x, y, e=_equation: tf.einsum(e, x, y), f(*_a), f(*_b))
gradient("bias_add", lambda x, y: tf.nn.bias_add(x, y), f(2, 3, 3, 4), f(4))

# Images

IMAGE = f(2, 9, 8, 4)
for _padding, _stride, _dilation in [("SAME", 1, 1), ("SAME", 2, 1), ("VALID", 2, 1), ("SAME", 1, 2), ("VALID", 3, 1)]:
    _tag = f"{_padding.lower()}_{_stride}_{_dilation}"
    gradient(
        f"conv2d_{_tag}",
        lambda x, w, p=_padding, s=_stride, d=_dilation: tf.nn.conv2d(x, w, s, p, dilations=d),
        IMAGE,
        f(3, 2, 4, 5),
    )
    if _dilation == 1:
        gradient(
            f"depthwise_{_tag}",
            lambda x, w, p=_padding, s=_stride: tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], p),
            IMAGE,
            f(3, 3, 4, 2),
        )
        gradient(f"max_pool_{_tag}", lambda x, p=_padding, s=_stride: tf.nn.max_pool2d(x, 3, s, p), IMAGE)
        gradient(f"avg_pool_{_tag}", lambda x, p=_padding, s=_stride: tf.nn.avg_pool2d(x, (3, 2), s, p), IMAGE)
case("conv2d_explicit", lambda x, w: tf.nn.conv2d(x, w, 2, [[0, 0], [1, 2], [0, 1], [0, 0]]), IMAGE, f(3, 2, 4, 5))
case("conv2d_groups", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), IMAGE, f(3, 3, 2, 6))
case("conv1d", lambda x, w: tf.nn.conv1d(x, w, 2, "SAME"), f(2, 9, 4), f(3, 4, 5))
gradient("conv3d", lambda x, w: tf.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME"), f(1, 4, 5, 6, 2), f(2, 3, 2, 2, 3))
gradient("conv2d_transpose", lambda x, w: tf.nn.conv2d_transpose(x, w, (2, 18, 15, 3), 2, "SAME"), IMAGE, f(3, 3, 3, 4))
case("pool3d", lambda x: [tf.nn.max_pool3d(x, 2, 2, "SAME"), tf.nn.avg_pool3d(x, 2, 1, "VALID")], f(1, 4, 5, 6, 2))


def batch_norm(training: bool) -> Callable[..., Any]:
    def function(x: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor) -> tf.Tensor:
        mean, variance = tf.constant([0.1, -0.2, 0.3, 0.0]), tf.constant([1.0, 0.5, 2.0, 1.5])
        given = {} if training else {"mean": mean, "variance": variance}
        return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3, is_training=training, **given)[0]

    return function


gradient("batch_norm_training", batch_norm(True), IMAGE, f(4), f(4))
gradient("batch_norm_inference", batch_norm(False), IMAGE, f(4), f(4))
case(
    "batch_norm_statistics",
    lambda x: tf.compat.v1.nn.fused_batch_norm(x, tf.ones(4), tf.zeros(4), is_training=True)[1:3],
    IMAGE,
)
case("lrn", lambda x: tf.nn.lrn(x, 1, 1.0, 0.1, 0.6), IMAGE)
for _half in (False, True):
    for _size in ((5, 13), (18, 16)):
        _tag = f"{'half_pixel' if _half else 'legacy'}_{_size[0]}"
        gradient(
            f"resize_bilinear_{_tag}",
            lambda x, s=_size, h=_half: RAW.ResizeBilinear(images=x, size=s, half_pixel_centers=h),
            IMAGE,
        )
        gradient(
            f"resize_nearest_{_tag}",
            lambda x, s=_size, h=_half: RAW.ResizeNearestNeighbor(images=x, size=s, half_pixel_centers=h),
            IMAGE,
        )
        case(
            f"resize_bicubic_{_tag}",
            lambda x, s=_size, h=_half: RAW.ResizeBicubic(images=x, size=s, half_pixel_centers=h),
            IMAGE,
        )
case(
    "resize_aligned",
    lambda x: [
        RAW.ResizeBilinear(images=x, size=(5, 13), align_corners=True),
        RAW.ResizeNearestNeighbor(images=x, size=(5, 13), align_corners=True),
    ],
    IMAGE,
)
case(
    "blocks",
    lambda x: [
        tf.nn.space_to_depth(x, 2),
        tf.nn.depth_to_space(x, 2),
        tf.space_to_batch(x, [2, 2], [[1, 1], [0, 2]]),
        tf.nn.depth_to_space(tf.nn.space_to_depth(x, 2), 2),
        tf.batch_to_space(tf.tile(x, [2, 1, 1, 1]), [2, 2], [[1, 0], [0, 1]]),
    ],
    f(2, 6, 4, 4),
)

# Reductions

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

# Shapes

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

# Indexing

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

# Mathematics

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

# Losses, random numbers

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

# Control flow


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


def save(name: str) -> None:
    function, inputs, v1 = CASES[name]
    names = [f"x{k}" for k in range(len(inputs))]
    specs = [tf.TensorSpec(x.shape, x.dtype, name=n) for n, x in zip(names, inputs, strict=True)]

    @tf.function(input_signature=specs, autograph=True)
    def traced(*xs: tf.Tensor) -> dict[str, tf.Tensor]:
        flat = tf.nest.flatten(function(*xs))
        return {f"y{k:02d}": tf.identity(y) for k, y in enumerate(flat)}

    concrete = traced.get_concrete_function()
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=v1)
    graph = frozen.graph.as_graph_def()
    for node in graph.node:
        for key in [k for k in node.attr if k.startswith("_")]:
            del node.attr[key]
    results = concrete(*[tf.constant(x) for x in inputs])
    arrays: dict[str, Any] = {f"in:{n}": x for n, x in zip(names, inputs, strict=True)}
    order = sorted(results)
    arrays |= {f"out:{k}": results[k].numpy() for k in order}
    arrays["graph"] = np.frombuffer(graph.SerializeToString(deterministic=True), np.uint8)
    arrays["outputs"] = np.array([t.name for t in frozen.outputs])
    arrays["inputs"] = np.array([t.name for t in frozen.inputs if t.dtype != tf.resource])
    np.savez_compressed(FOLDER / f"{name}.npz", **arrays)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or CASES:
        try:
            save(wanted)
        except Exception as error:  # one case must not stop the others
            print(f"{wanted}: {type(error).__name__}: {str(error)[-250:]}")
