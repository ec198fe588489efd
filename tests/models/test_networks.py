"""Small whole networks of the usual kinds: three witnesses agree."""

import numpy as np
import pytest
from onnx import ModelProto

import onnxla
from onnxla.hlo.types import Array
from tests.frontends.witness import run_onnxruntime
from tests.models.witnesses import check, model, normal


def residual_network() -> ModelProto:
    """Stem, a residual block, a block that halves the image, a classifier. The batch is open."""
    weights = {
        "stem": normal(16, 3, 3, 3, seed=1, scale=0.3),
        "scale": 1 + normal(16, seed=2, scale=0.1),
        "bias": normal(16, seed=3),
        "mean": normal(16, seed=4),
        "var": np.abs(normal(16, seed=5)) + 0.5,
        "a": normal(16, 16, 3, 3, seed=6, scale=0.1),
        "b": normal(16, 16, 3, 3, seed=7, scale=0.1),
        "deep": normal(16, 1, 3, 3, seed=8, scale=0.3),
        "point": normal(24, 16, 1, 1, seed=9, scale=0.2),
        "fc": normal(10, 24, seed=10, scale=0.2),
        "fc_bias": normal(10, seed=11),
    }
    return model(
        """<ir_version: 10, opset_import: ["": 15]>
        residual (float[N,3,17,19] x) => (float[N,10] y) {
            s = Conv<pads = [1,1,1,1], kernel_shape = [3,3]>(x, stem)
            n = BatchNormalization(s, scale, bias, mean, var)
            r = Relu(n)
            p = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(r)
            c1 = Conv<pads = [1,1,1,1]>(p, a)
            r1 = Relu(c1)
            c2 = Conv<pads = [1,1,1,1]>(r1, b)
            sum = Add(c2, p)
            r2 = Relu(sum)
            d = Conv<group = 16, strides = [2,2], pads = [1,1,1,1]>(r2, deep)
            w = HardSwish(d)
            e = Conv(w, point)
            g = GlobalAveragePool(e)
            f = Flatten(g)
            logits = Gemm<transB = 1>(f, fc, fc_bias)
            y = Softmax(logits)
        }""",
        weights,
    )


@pytest.mark.parametrize("batch", [1, 3])
def test_residual_network(batch: int) -> None:
    check(residual_network(), {"x": normal(batch, 3, 17, 19)})


def transformer_block(heads: int = 4, width: int = 32) -> ModelProto:
    """Pre-norm attention and a GELU network, its shapes computed from those of the input."""
    size = width // heads
    weights = {
        "g1": 1 + normal(width, seed=1, scale=0.1),
        "b1": normal(width, seed=2, scale=0.1),
        "qkv": normal(width, 3 * width, seed=3, scale=0.2),
        "out": normal(width, width, seed=4, scale=0.2),
        "g2": 1 + normal(width, seed=5, scale=0.1),
        "b2": normal(width, seed=6, scale=0.1),
        "up": normal(width, 4 * width, seed=7, scale=0.2),
        "down": normal(4 * width, width, seed=8, scale=0.2),
        "zero": np.array(0),
        "one": np.array(1),
        "heads": np.array([3, heads, size]),
        "width": np.array([width]),
        "axis": np.array([0]),
        "root": np.array(np.sqrt(size), np.float32),
        "half": np.array(0.5, np.float32),
        "two": np.array(np.sqrt(2), np.float32),
        "unit": np.array(1, np.float32),
    }
    return model(
        """<ir_version: 10, opset_import: ["": 17]>
        block (float[B,S,32] x, float[B,S] mask) => (float[B,S,32] y) {
            n1 = LayerNormalization<axis = -1>(x, g1, b1)
            projected = MatMul(n1, qkv)
            shape = Shape(x)
            batch0 = Gather(shape, zero)
            length0 = Gather(shape, one)
            batch = Unsqueeze(batch0, axis)
            length = Unsqueeze(length0, axis)
            split_shape = Concat<axis = 0>(batch, length, heads)
            parts = Reshape(projected, split_shape)
            turned = Transpose<perm = [2, 0, 3, 1, 4]>(parts)
            q0, k0, v0 = Split<axis = 0>(turned)
            q = Squeeze(q0, axis)
            k = Squeeze(k0, axis)
            v = Squeeze(v0, axis)
            kt = Transpose<perm = [0, 1, 3, 2]>(k)
            qk = MatMul(q, kt)
            scores = Div(qk, root)
            where = Constant<value_ints = [1, 2]>()
            bias = Unsqueeze(mask, where)
            masked = Add(scores, bias)
            p = Softmax<axis = -1>(masked)
            mixed = MatMul(p, v)
            back = Transpose<perm = [0, 2, 1, 3]>(mixed)
            joined_shape = Concat<axis = 0>(batch, length, width)
            joined = Reshape(back, joined_shape)
            o = MatMul(joined, out)
            r = Add(x, o)
            n2 = LayerNormalization<axis = -1>(r, g2, b2)
            u = MatMul(n2, up)
            scaled = Div(u, two)
            erf = Erf(scaled)
            plus = Add(erf, unit)
            prod = Mul(u, plus)
            gelu = Mul(prod, half)
            dn = MatMul(gelu, down)
            y = Add(r, dn)
        }""",
        weights,
    )


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (2, 7), (1, 16)])
def test_transformer_block(batch: int, length: int) -> None:
    mask = np.zeros((batch, length), np.float32)
    mask[:, length // 2 + 1 :] = -10000
    check(transformer_block(), {"x": normal(batch, length, 32), "mask": mask}, 1e-3, 1e-4)


def tagger(hidden: int = 12, vocabulary: int = 50, tags: int = 5) -> ModelProto:
    """Embeddings, an LSTM in both directions over sentences of different lengths, the best tag of each word."""
    weights = {
        "table": normal(vocabulary, 8, seed=1),
        "w": normal(2, 4 * hidden, 8, seed=2, scale=0.3),
        "r": normal(2, 4 * hidden, hidden, seed=3, scale=0.3),
        "b": normal(2, 8 * hidden, seed=4, scale=0.1),
        "project": normal(2 * hidden, tags, seed=5),
        "flat": np.array([0, 0, -1]),
    }
    return model(
        """<ir_version: 10, opset_import: ["": 14]>
        tagger (int64[T,N] words, int32[N] lengths) => (int64[T,N] tags, float[T,N,5] scores) {
            e = Gather(table, words)
            h, last, cell = LSTM<direction = "bidirectional", hidden_size = 12>(e, w, r, b, lengths)
            together = Transpose<perm = [0, 2, 1, 3]>(h)
            wide = Reshape(together, flat)
            scores = MatMul(wide, project)
            tags = ArgMax<axis = -1, keepdims = 0>(scores)
        }""",
        weights,
    )


@pytest.mark.parametrize(("length", "batch"), [(1, 1), (6, 3)])
def test_tagger(length: int, batch: int) -> None:
    words = np.random.default_rng(0).integers(0, 50, (length, batch))
    check(tagger(), {"words": words, "lengths": np.linspace(1, length, batch).astype(np.int32)}, 1e-3, 1e-4)


def test_half_precision_network() -> None:
    """Between operations values are f32, as in onnxruntime; the interpreter rounds after each one."""
    weights = {
        "w1": normal(8, 3, 3, 3, seed=1, scale=0.3, dtype=np.float16),
        "b1": normal(8, seed=2, dtype=np.float16),
        "w2": normal(8, 4, seed=3, scale=0.3, dtype=np.float16),
    }
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        half (float16[1,3,9,9] x) => (float16[1,4] y) {
            c = Conv(x, w1, b1)
            s = Sigmoid(c)
            m = Mul(c, s)
            g = GlobalAveragePool(m)
            f = Flatten(g)
            l = MatMul(f, w2)
            y = Softmax(l)
        }""",
        weights,
    )
    check(network, {"x": normal(1, 3, 9, 9, dtype=np.float16)}, 4e-3, 1e-3)


def test_mixed_precision_network_is_as_exact_as_onnxruntime() -> None:
    """As converters make them, with casts around what they keep in f32: nothing is rounded on the way."""
    weights: dict[str, Array] = {"bound": np.array(-0.4, np.float32)}
    lines, value, wide = [], "x", "xw"
    widened: dict[str, Array] = {"bound": np.array(-0.4)}
    lines_wide = ["xw = Cast<to = 11>(x)"]
    for i in range(6):
        w = normal(8, 8, 3, 1, seed=i, scale=0.2, dtype=np.float16)
        weights[f"w{i}"], widened[f"w{i}"] = w, w.astype(np.float64)
        lines += [
            f"c{i} = Conv<pads = [1, 0, 1, 0]>({value}, w{i})",
            f"f{i} = Cast<to = 1>(c{i})",
            f"m{i} = Max(f{i}, bound)",
            f"h{i} = Cast<to = 10>(m{i})",
            f"p{i} = MaxPool<kernel_shape = [2, 1]>(h{i})",
        ]
        lines_wide += [
            f"c{i} = Conv<pads = [1, 0, 1, 0]>({wide}, w{i})",
            f"m{i} = Max(c{i}, bound)",
            f"p{i} = MaxPool<kernel_shape = [2, 1]>(m{i})",
        ]
        value = wide = f"p{i}"
    head = '<ir_version: 10, opset_import: ["": 17]> g (float16[1,8,16,4] x) => '
    x = normal(1, 8, 16, 4, dtype=np.float16)
    network = model(f"{head}(float16[1,8,10,4] p5) {{\n" + "\n".join(lines) + "\n}", weights)
    exact = model(f"{head}(double[1,8,10,4] p5) {{\n" + "\n".join(lines_wide) + "\n}", widened)
    (best,) = onnxla.compile(exact).run(None, {"x": x})
    (ours,), (theirs,) = onnxla.compile(network).run(None, {"x": x}), run_onnxruntime(network, {"x": x})
    assert np.linalg.norm(ours - best) <= 1.01 * np.linalg.norm(theirs - best)
    assert np.linalg.norm(ours - best) < 2.0**-11 * np.linalg.norm(best)


@pytest.mark.parametrize(
    "casts", ["h = Cast<to = 10>(x)\ny = Cast<to = 1>(h)", "y = CastLike(h, x)\nh = Cast<to = 16>(x)"]
)
def test_a_cast_to_half_precision_and_back_rounds(casts: str) -> None:
    rounding = model(f'<ir_version: 10, opset_import: ["": 19]> g (float[3] x) => (float[3] y) {{\n{casts}\n}}')
    x = np.array([1 + 2.0**-13, 1000.3, 1e-9], np.float32)
    (y,) = check(rounding, {"x": x}, 0, 0)
    assert not np.array_equal(y, x)


def test_quantised_network() -> None:
    """QuantizeLinear and DequantizeLinear around a convolution and a product: at most one step apart anywhere."""
    rng = np.random.default_rng(0)
    weights: dict[str, Array] = {
        "sx": np.array(0.02, np.float32),
        "zx": np.array(128, np.uint8),
        "w": rng.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8),
        "sw": rng.uniform(0.001, 0.01, 8).astype(np.float32),
        "zw": np.zeros(8, np.int8),
        "bias": normal(8, seed=3),
        "sy": np.array(0.03, np.float32),
        "zy": np.array(100, np.uint8),
        "v": rng.integers(-127, 128, (8, 4)).astype(np.int8),
        "sv": np.array(0.01, np.float32),
        "zv": np.array(0, np.int8),
    }
    network = model(
        """<ir_version: 10, opset_import: ["": 13]>
        quantised (float[1,3,9,9] x) => (float[1,4] y, uint8[1,8,7,7] q) {
            xq = QuantizeLinear(x, sx, zx)
            xd = DequantizeLinear(xq, sx, zx)
            wd = DequantizeLinear<axis = 0>(w, sw, zw)
            c = Conv(xd, wd, bias)
            r = Relu(c)
            q = QuantizeLinear(r, sy, zy)
            d = DequantizeLinear(q, sy, zy)
            g = GlobalAveragePool(d)
            f = Flatten(g)
            vd = DequantizeLinear(v, sv, zv)
            y = MatMul(f, vd)
        }""",
        weights,
    )
    check(network, {"x": normal(1, 3, 9, 9)}, 1e-3, 0.03 / 49 * 1.27)
