"""Functions of jax.numpy, jax.lax and jax.nn, with arguments: what is exported and compiled here, and judged by XLA.

Needs JAX, a test dependency. Odd sizes throughout; edge values where the function has an opinion on them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onnxla.hlo.types import Array


@dataclass(frozen=True)
class JaxProgram:
    """A function and what it is called with."""

    function: Callable[..., Any]
    arguments: tuple[Array, ...]


PROGRAMS: dict[str, JaxProgram] = {}


def program(*arguments: Array) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """List a function under its own name."""

    def listed(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = JaxProgram(function, arguments)
        return function

    return listed


def normal(*shape: int, seed: int = 0, dtype: str = "float32") -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def integers(high: int, *shape: int, low: int = 0) -> Array:
    return np.random.default_rng([high, *shape]).integers(low, high, shape).astype(np.int32)


def scalar(value: float, dtype: Any = np.int32) -> Array:
    return np.array(value, dtype)


EDGES = np.array([0.0, -0.0, 1.0, -1.5, 2.5, 3.5, -0.5, np.inf, -np.inf, np.nan, 2e-38, 88.8, -104.0], np.float32)


# jax.nn


@program(normal(5, 7))
def softmax_and_relatives(x: Any) -> Any:
    return jax.nn.softmax(x), jax.nn.log_softmax(x, axis=0), jax.nn.logsumexp(x, axis=1), jax.nn.softmax(x, where=x > 0)


@program(EDGES)
def activations(x: Any) -> Any:
    names = (
        "relu relu6 elu selu celu gelu silu sigmoid log_sigmoid softplus soft_sign hard_tanh hard_swish mish leaky_relu"
    )
    return [getattr(jax.nn, name)(x) for name in names.split()] + [jax.nn.gelu(x, approximate=False)]


@program(normal(3, 5, 8), normal(8), normal(8, seed=1))
def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias


@program(normal(3, 6, 5, 4), normal(4), normal(4, seed=1))
def batch_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return jax.nn.standardize(x, axis=(0, 1, 2)) * scale + bias, mean, variance


@program(integers(7, 5, low=-1), normal(5, 7))
def one_hot_and_cross_entropy(labels: Any, logits: Any) -> Any:
    hot = jax.nn.one_hot(labels, 7)
    return hot, -(hot * jax.nn.log_softmax(logits)).sum(-1).mean()


@program(normal(2, 5, 3, 8), normal(2, 7, 3, 8, seed=1), normal(2, 7, 3, 8, seed=2))
def attention(query: Any, key: Any, value: Any) -> Any:
    return jax.nn.dot_product_attention(query, key, value), jax.nn.dot_product_attention(
        query, key[:, :5], value[:, :5], is_causal=True
    )


# Convolutions and windows


@program(normal(2, 9, 7, 4), normal(3, 3, 4, 6))
def convolution_channels_last(x: Any, kernel: Any) -> Any:
    return lax.conv_general_dilated(x, kernel, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@program(normal(2, 6, 9), normal(6, 2, 3))
def convolution_grouped_and_dilated(x: Any, kernel: Any) -> Any:
    return lax.conv_general_dilated(x, kernel, (1,), [(2, 3)], rhs_dilation=(2,), feature_group_count=3)


@program(normal(1, 5, 4, 3), normal(3, 3, 3, 2))
def convolution_transposed(x: Any, kernel: Any) -> Any:
    return lax.conv_transpose(x, kernel, (2, 2), "SAME")


@program(normal(2, 9, 8, 3))
def pooling(x: Any) -> Any:
    window, strides = (1, 3, 2, 1), (1, 2, 2, 1)
    largest = lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "SAME")
    mean = lax.reduce_window(x, 0.0, lax.add, window, strides, "VALID") / 6
    return (
        largest,
        mean,
        lax.reduce_window(x, 1.0, lax.mul, (1, 2, 1, 1), (1, 1, 1, 1), [(0, 0), (1, 0), (0, 0), (0, 0)]),
    )


@program(normal(1, 6, 6, 2))
def gradient_of_a_max_pool(x: Any) -> Any:
    def total(x: Any) -> Any:
        return (lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum()

    return jax.grad(total)(x)


# Products


@program(normal(3, 4, 5), normal(3, 5, 2))
def einsum(x: Any, y: Any) -> Any:
    return jnp.einsum("bij,bjk->kbi", x, y), jnp.einsum("bij,bjk->", x, y), jnp.einsum("bii->bi", x[:, :, :4])


@program(normal(4, 5), normal(5, 3), normal(5))
def products(x: Any, y: Any, z: Any) -> Any:
    return x @ y, jnp.dot(x, z), jnp.outer(z, z), jnp.tensordot(x, y, 1), jnp.kron(x, y)


@program(normal(4, 6).astype(jnp.bfloat16), normal(6, 5).astype(jnp.bfloat16))
def product_of_bfloat16(x: Any, y: Any) -> Any:
    return jnp.matmul(x, y, preferred_element_type=jnp.float32), x + 1


# Control flow


@program(normal(6, 3), normal(3, 3))
def scan(xs: Any, w: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        carry = jnp.tanh(carry @ w + x)
        return carry, carry * 2

    return lax.scan(step, jnp.zeros(3), xs), lax.scan(step, jnp.zeros(3), xs, reverse=True)


@program(scalar(1000.0, np.float32))
def while_loop(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 3, s[1] + 1), (x, 0))


@program(normal(4), scalar(3))
def conditional_and_switch(x: Any, which: Any) -> Any:
    scaled = x * 2  # captured by the branches
    return lax.cond(which > 2, lambda v: v + scaled, lambda v: v - scaled, x), lax.switch(
        which, [jnp.sin, jnp.cos, lambda v: v @ scaled * v, lambda v: -v], x
    )


@program(normal(5, 4))
def map_and_vmap(x: Any) -> Any:
    return lax.map(lambda row: row / row.sum(), x), jax.vmap(lambda row: jnp.convolve(row, row[:2]))(x)


@program(normal(7))
def fori_loop_with_updates(x: Any) -> Any:
    return lax.fori_loop(1, 7, lambda i, v: v.at[i].add(v[i - 1]), x)


@program(normal(9))
def associative_scan(x: Any) -> Any:
    return lax.associative_scan(jnp.maximum, x), lax.associative_scan(jnp.multiply, x, reverse=True)


# Order


@program(np.array([[3, 1, np.nan, -0.0, 0.0], [2, 2, -np.inf, 1, np.inf]], np.float32))
def sorting(x: Any) -> Any:
    return jnp.sort(x), jnp.argsort(x, axis=0), lax.sort([x, -x], num_keys=1), jnp.sort(x, descending=True)


@program(normal(4, 9))
def top_k(x: Any) -> Any:
    return lax.top_k(x, 3)


@program(np.array([[3, 1, np.nan, 0], [2, 5, 5, 1]], np.float32))
def argmax_and_argmin(x: Any) -> Any:
    return jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x), jnp.nanmax(x), jnp.nanargmin(x, 1)


@program(normal(4, 5))
def cumulative(x: Any) -> Any:
    return jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cumlogsumexp(x, 0, reverse=True)


@program(normal(11), np.array([-2.0, 0.1, 9.0], np.float32))
def searching(x: Any, y: Any) -> Any:
    ordered = jnp.sort(x)
    return (
        jnp.searchsorted(ordered, y),
        jnp.digitize(y, ordered),
        jnp.median(x),
        jnp.quantile(x, 0.3),
        jnp.interp(y, ordered, x),
    )


# Indexing


@program(normal(6, 5), integers(5, 4, low=-3))
def gathering(x: Any, places: Any) -> Any:
    return (
        x[places],
        jnp.take(x, places, axis=1, mode="clip"),
        jnp.take_along_axis(x[:4], places[:, None], 1),
        x[jnp.array([0, 2]), 1:4],
        x[::2, ::-1],
        x[places, 1],
    )


@program(normal(6, 5), integers(9, 4), normal(4, 5, seed=3))
def scattering(x: Any, places: Any, updates: Any) -> Any:
    """Places beyond the end are dropped."""
    return x.at[places].add(updates), x.at[places].set(1.0), x.at[places].max(updates), x.at[places, 0].multiply(2.0)


@program(normal(8, 5), scalar(6), scalar(-1))
def dynamic_slices(x: Any, i: Any, j: Any) -> Any:
    part = lax.dynamic_slice(x, (i, j), (3, 2))
    return part, lax.dynamic_update_slice(x, part * 2, (j, i)), lax.dynamic_index_in_dim(x, i, keepdims=False)


@program(normal(5, 3), integers(3, 5))
def segment_sum(x: Any, groups: Any) -> Any:
    return jax.ops.segment_sum(x, groups, 4), jax.ops.segment_max(x, groups, 4), jnp.bincount(groups, length=4)


@program(normal(3, 4), normal(3, 4, seed=1))
def choosing(x: Any, y: Any) -> Any:
    return (
        jnp.where(x > y, x, y),
        jnp.clip(x, -0.5, 0.5),
        jnp.select([x > 1, x > 0], [x, y], 0),
        lax.clamp(-1.0, x, y + 9),
    )


@program(normal(2, 3, 4))
def movement(x: Any) -> Any:
    return (
        jnp.transpose(x, (2, 0, 1)),
        jnp.pad(x, ((0, 1), (2, 0), (0, 0)), mode="reflect"),
        lax.pad(x, 7.0, ((0, 0, 1), (-1, 2, 0), (1, 0, 2))),
        jnp.concatenate([x, x[:1]]),
        jnp.tile(x, (1, 2, 1)),
        jnp.roll(x, 2, 2),
        jnp.tril(x),
        jnp.flip(x, 1),
        jnp.repeat(x, 2, 1),
        jnp.stack([x, x], 1),
    )


# Numbers


@program(EDGES)
def unary_functions(x: Any) -> Any:
    names = "exp expm1 log log1p sqrt cbrt sin cos tan tanh sinh cosh arctan arcsinh floor ceil sign abs isfinite rint"
    return [getattr(jnp, name)(x) for name in names.split()] + [lax.rsqrt(x), lax.round(x), lax.erf(x), lax.logistic(x)]


@program(np.linspace(-0.9, 0.9, 11, dtype=np.float32))
def inverse_functions(x: Any) -> Any:
    return jnp.arcsin(x), jnp.arccos(x), jnp.arctanh(x), lax.erf_inv(x), jnp.arccosh(1 - x), lax.erfc(x * 4)


@program(np.linspace(0.2, 9, 11, dtype=np.float32))
def special_functions(x: Any) -> Any:
    return (
        lax.lgamma(x),
        lax.digamma(x),
        jax.scipy.special.i0e(x),
    )


@program(EDGES, np.roll(EDGES, 3))
def binary_functions(x: Any, y: Any) -> Any:
    return (
        x + y,
        x * y,
        x / y,
        x**y,
        jnp.arctan2(x, y),
        jnp.maximum(x, y),
        lax.rem(x, y),
        x == y,
        x < y,
        lax.nextafter(x, y),
    )


@program(integers(100, 9, low=-100), integers(5, 9, low=1))
def integer_arithmetic(x: Any, y: Any) -> Any:
    return (
        x // y,
        x % y,
        x << y,
        x >> y,
        x & y,
        ~x,
        lax.population_count(x),
        lax.clz(y),
        lax.div(x, y),
        x.astype(jnp.uint8),
    )


@program(normal(5), normal(5, seed=1))
def complex_numbers(x: Any, y: Any) -> Any:
    z = lax.complex(x, y)
    return z * z, jnp.abs(z), jnp.exp(z), jnp.conj(z), jnp.angle(z), z.real / z.imag


# Linear algebra and Fourier transforms


@program(normal(3, 12), normal(4, 8))
def fourier_transforms(x: Any, y: Any) -> Any:
    return jnp.fft.fft(x), jnp.fft.ifft(x), jnp.fft.rfft(x), jnp.fft.irfft(x), jnp.fft.fft2(y), jnp.fft.fftshift(y)


@program(normal(2, 5, 5))
def cholesky(x: Any) -> Any:
    """The second matrix has no factor: NaN."""
    good = x[:1] @ jnp.swapaxes(x[:1], 1, 2) + jnp.eye(5)
    return jnp.linalg.cholesky(jnp.concatenate([good, -good]))


@program(normal(2, 4, 4) + 3 * np.eye(4, dtype=np.float32), normal(2, 4, 3))
def solve_triangular(a: Any, b: Any) -> Any:
    solve = jax.vmap(lambda a, b, **how: jax.scipy.linalg.solve_triangular(a, b, **how))
    return solve(a, b), jax.vmap(lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True, trans=1))(a, b)


@program(normal(2, 5, 5) + 3 * np.eye(5, dtype=np.float32), normal(2, 5, 2), normal(3, 4))
def lu_and_what_stands_on_it(a: Any, b: Any, c: Any) -> Any:
    """The last matrix has no inverse: its determinant is 0."""
    singular = jnp.stack([a[0], a[0].at[2].set(0)])
    factors = [jax.scipy.linalg.lu_factor(x) for x in (a, singular, c)]
    complex_solution = jnp.linalg.solve(a + 1j * jnp.swapaxes(a, 1, 2), b)
    found = jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.slogdet(singular), jnp.linalg.det(singular)
    return factors, found, complex_solution, jax.scipy.linalg.expm(a[0] / 4)


@program(normal(2, 5, 3), normal(3, 5))
def qr_decompositions(a: Any, b: Any) -> Any:
    zeros = jnp.zeros((3, 2)).at[0, 0].set(-2.0)
    found = [
        jnp.linalg.qr(x, mode=mode) for x in (a, b, zeros, b[:, :3] + 1j * a[0, :3]) for mode in ("reduced", "complete")
    ]
    return found, jnp.linalg.qr(a, mode="r")


@program(normal(2, 5, 5))
def symmetric_eigenvalues(a: Any) -> Any:
    """Vectors have a free factor each, so what they make is compared. Of equal values and of NaN too."""
    hermitian = a[0] + a[0].T + 1j * (a[0] - a[0].T)
    twice = jnp.stack([a[1] @ a[1].T, jnp.diag(jnp.array([2.0, -1, 2, -1, 0])), jnp.full((5, 5), jnp.nan)])
    found = []
    for x in (hermitian, twice):
        values, vectors = jnp.linalg.eigh(x)
        adjoint = jnp.conj(jnp.swapaxes(vectors, -1, -2))
        found += [values, (vectors * values[..., None, :]) @ adjoint, adjoint @ vectors]
    return found, jnp.linalg.eigvalsh(a, UPLO="U")


@program(normal(2, 5, 3), normal(2, 4))
def singular_value_decompositions(a: Any, b: Any) -> Any:
    """As eigenvalues are compared."""
    tall = jnp.stack([*a, jnp.outer(a[0, :, 0], b[0, :3])])  # the last one has two values that are 0
    found = []
    for x, whole in ((tall, True), (b + 1j * b[::-1], False)):
        u, values, v = jnp.linalg.svd(x, full_matrices=whole)
        count = values.shape[-1]
        found += [values, (u[..., :count] * values[..., None, :]) @ v[..., :count, :]]
        found += [jnp.conj(jnp.swapaxes(u, -1, -2)) @ u, v @ jnp.conj(jnp.swapaxes(v, -1, -2))]
    return found, jnp.linalg.svd(a, compute_uv=False)


# Random numbers


@program(np.array([0, 42], np.uint32))
def random_numbers(key: Any) -> Any:
    first, second, third = jax.random.split(key, 3)
    return (
        jax.random.uniform(first, (3, 5)),
        jax.random.normal(second, (7,)),
        jax.random.randint(third, (5,), -3, 9),
        jax.random.categorical(third, jnp.zeros((4, 5))),
    )


# Learning


def network(parameters: Any, x: Any) -> Any:
    (w1, b1), (w2, b2) = parameters
    return jax.nn.relu(x @ w1 + b1) @ w2 + b2


@program(normal(5, 7), normal(7, 6), normal(6), normal(6, 3), normal(3), integers(3, 5))
def gradient_of_a_network(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, labels: Any) -> Any:
    def loss(parameters: Any) -> Any:
        chances = jax.nn.log_softmax(network(parameters, x))
        return -jnp.take_along_axis(chances, labels[:, None], 1).mean()

    return jax.value_and_grad(loss)([(w1, b1), (w2, b2)])


@program(normal(4, 6), normal(6, 2), normal(6, 2, seed=5) * 0, np.abs(normal(6, 2, seed=6)) * 0, scalar(1))
def adam_step(x: Any, w: Any, m: Any, v: Any, step: Any) -> Any:
    gradient = jax.grad(lambda w: ((x @ w) ** 2).mean())(w)
    m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
    corrected = (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return w - 0.01 * corrected, m, v


@program(normal(2, 8, 8, 1), normal(3, 3, 1, 4), normal(36, 3))
def gradient_of_a_convolution(images: Any, kernel: Any, dense: Any) -> Any:
    def loss(kernel: Any, dense: Any) -> Any:
        features = lax.conv_general_dilated(images, kernel, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jnp.square(jax.nn.relu(features).reshape(2, -1) @ dense).sum()

    return jax.grad(loss, (0, 1))(kernel, dense)


@program(normal(4), normal(4, seed=1))
def jacobian_and_hessian(x: Any, v: Any) -> Any:
    def value(x: Any) -> Any:
        return jnp.sin(x).prod() + jnp.exp(x).sum()

    return jax.jacfwd(value)(x), jax.hessian(value)(x), jax.jvp(value, (x,), (v,)), jax.checkpoint(value)(x)
