"""Convolutions, pooling, normalisation, resizing, blocks."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tests.frontends.tensorflow.operation_cases import RAW, case, f, gradient

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
