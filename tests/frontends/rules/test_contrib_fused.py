"""onnxruntime's fused products, convolutions, activations and normalisations against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.frontends.rules.test_contrib_attention import NONE, check, model_with, normal
from tests.frontends.witness import check_against_onnxruntime, model_of, run_imported


class TestProducts:
    @pytest.mark.parametrize("trans_a", [0, 1])
    @pytest.mark.parametrize("trans_b", [0, 1])
    def test_transposed_operands(self, trans_a: int, trans_b: int) -> None:
        a = normal(2, 5, 3) if trans_a else normal(2, 3, 5)
        w = normal(2, 4, 5) if trans_b else normal(2, 5, 4)
        check("FusedMatMul", {"a": a, "w": w}, ["y"], transA=trans_a, transB=trans_b, alpha=0.5)
        check("FusedMatMul", {"a": a, "w": w[:1]}, ["y"], transA=trans_a, transB=trans_b)
        check("FusedMatMul", {"a": a[0], "w": w[0]}, ["y"], transA=trans_a, transB=trans_b)

    @pytest.mark.parametrize("trans_a", [0, 1])
    @pytest.mark.parametrize("trans_b", [0, 1])
    def test_batch_behind_the_rows(self, trans_a: int, trans_b: int) -> None:
        a = normal(5, 2, 3) if trans_a else normal(3, 2, 5)
        w = normal(4, 2, 5) if trans_b else normal(5, 2, 4)
        options = {"transBatchA": 1, "transBatchB": 1, "transA": trans_a, "transB": trans_b}
        check("FusedMatMul", {"a": a, "w": w}, ["y"], **options)

    @pytest.mark.parametrize("activation, alpha", [("Relu", None), ("LeakyRelu", 0.2), ("Tanh", None)])
    def test_gemm_with_activation(self, activation: str, alpha: float | None) -> None:
        inputs = {"a": normal(3, 5), "w": normal(4, 5), "c": normal(4)}
        options: dict[str, Any] = {} if alpha is None else {"activation_alpha": alpha}
        check("FusedGemm", inputs, ["y"], transB=1, alpha=0.5, beta=2.0, activation=activation, **options)

    @pytest.mark.parametrize(
        "activation, parameters",
        [("Relu", []), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4])],
    )
    def test_conv_with_activation(self, activation: str, parameters: list[float]) -> None:
        inputs = {"x": normal(1, 4, 6, 6), "w": normal(4, 2, 3, 3), "b": normal(4)}
        options: dict[str, Any] = {"group": 2, "pads": [1, 1, 1, 1], "activation": activation}
        if parameters:
            options["activation_params"] = parameters
        check("FusedConv", inputs, ["y"], **options)

    def test_conv_with_sum(self) -> None:
        inputs = {"x": normal(1, 4, 6, 6), "w": normal(4, 4, 3, 3), "b": normal(4), "z": normal(1, 4, 4, 4)}
        check("FusedConv", inputs, ["y"], activation="Relu")

    def test_channels_last_is_the_transposed_result(self) -> None:
        """onnxruntime's CPU provider has no such kernels for floats: the witness is our own channels-first import."""
        x, w = normal(1, 6, 7, 4), normal(5, 4, 3, 3)
        first = {"x": np.ascontiguousarray(x.transpose(0, 3, 1, 2)), "w": w}
        plain = model_of([helper.make_node("Conv", ["x", "w"], ["y"])], first, ["y"])
        expected = run_imported(import_model(plain), first)[0].transpose(0, 2, 3, 1)
        model = model_with("NhwcConv", {"x": x, "w": w}, ["y"])
        np.testing.assert_allclose(run_imported(import_model(model), {"x": x, "w": w})[0], expected, rtol=1e-5)

    def test_channels_last_max_pool(self) -> None:
        x = np.random.default_rng(0).integers(0, 256, (1, 7, 6, 3)).astype(np.uint8)
        check("NhwcMaxPool", {"x": x}, ["y"], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])


class TestActivations:
    @pytest.mark.parametrize("op", ["Gelu", "FastGelu", "QuickGelu"])
    def test_alone(self, op: str) -> None:
        check(op, {"x": normal(3, 7)}, ["y"])

    @pytest.mark.parametrize("op", ["BiasGelu", "FastGelu"])
    def test_with_bias(self, op: str) -> None:
        check(op, {"x": normal(2, 3, 7), "b": normal(7)}, ["y"])

    def test_split_gelu_and_added_bias(self) -> None:
        """Only GPU providers have these kernels: the witness is numpy."""
        x, bias, skip = normal(2, 3, 8), normal(8), normal(2, 3, 8, seed=1)
        added = run_imported(
            import_model(model_with("BiasAdd", {"x": x, "b": bias, "s": skip}, ["y"])), {"x": x, "b": bias, "s": skip}
        )
        np.testing.assert_allclose(added[0], x + bias + skip, rtol=1e-6)
        split = run_imported(import_model(model_with("BiasSplitGelu", {"x": x, "b": bias}, ["y"])), {"x": x, "b": bias})
        left, right = np.split(x + bias, 2, axis=2)
        gelu = run_imported(import_model(model_with("Gelu", {"x": right}, ["y"])), {"x": right})
        np.testing.assert_allclose(split[0], left * gelu[0], rtol=1e-5)


class TestNormalization:
    @pytest.mark.parametrize("skip", [(2, 5, 8), (1, 5, 8), (5, 8)])
    @pytest.mark.parametrize("bias", [False, True])
    def test_skip(self, skip: tuple[int, ...], bias: bool) -> None:
        inputs = {"x": normal(2, 5, 8), "s": normal(*skip, seed=1), "g": normal(8), "b": normal(8, seed=1)}
        if bias:
            inputs["c"] = normal(8, seed=2)
        check("SkipLayerNormalization", inputs, ["y", "", "", "sum"], epsilon=1e-5)

    @pytest.mark.parametrize("bias", [False, True])
    def test_skip_simplified(self, bias: bool) -> None:
        inputs = {"x": normal(2, 5, 8), "s": normal(2, 5, 8, seed=1), "g": normal(8)}
        if bias:
            inputs["c"] = normal(8, seed=2)
        check("SkipSimplifiedLayerNormalization", inputs, ["y", "", "", "sum"], epsilon=1e-5)

    def test_simplified_in_the_standard_domain(self) -> None:
        fed = {"x": normal(2, 5, 8), "g": normal(8)}
        node = helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["y"], axis=-1, epsilon=1e-5)
        check_against_onnxruntime(model_of([node], fed, ["y"], opset=14), fed)

    def test_layer_normalization_before_its_opset(self) -> None:
        fed = {"x": normal(2, 5, 8), "g": normal(8), "b": normal(8, seed=1)}
        node = helper.make_node("LayerNormalization", ["x", "g", "b"], ["y"], axis=-1)
        check_against_onnxruntime(model_of([node], fed, ["y"], opset=13), fed)

    @pytest.mark.parametrize("segments", [False, True])
    def test_embeddings(self, segments: bool) -> None:
        rng = np.random.default_rng(0)
        inputs = {
            "ids": rng.integers(0, 9, (2, 5)).astype(np.int32),
            "seg" if segments else "-seg": rng.integers(0, 2, (2, 5)).astype(np.int32),
            "words": normal(9, 8),
            "places": normal(6, 8),
            "segs" if segments else "-segs": normal(2, 8),
            "g": normal(8),
            "b": normal(8, seed=1),
            "mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
        }
        check("EmbedLayerNormalization", inputs, ["y", "lengths"], epsilon=1e-6)

    def test_quantised_embeddings(self) -> None:
        rng = np.random.default_rng(0)

        def table(*shape: int) -> Array:
            return rng.integers(0, 256, shape).astype(np.uint8)

        inputs: dict[str, Array] = {
            "ids": rng.integers(0, 9, (2, 5)).astype(np.int32),
            "seg": rng.integers(0, 2, (2, 5)).astype(np.int32),
            "words": table(9, 8),
            "places": table(6, 8),
            "segs": table(2, 8),
            "g": table(8),
            "b": table(8),
            "mask": np.ones((2, 5), np.int32),
        }
        inputs |= {f"s{i}": np.array(0.01 * (i + 1), np.float32) for i in range(5)}
        inputs |= {f"z{i}": np.array(120 + i, np.uint8) for i in range(5)}
        held = [n for n in inputs if n not in ("ids", "seg", "mask")]
        check("QEmbedLayerNormalization", inputs, ["y", "lengths"], held=held, epsilon=1e-6)

    @pytest.mark.parametrize("channels_last", [0, 1])
    def test_group_norm(self, channels_last: int) -> None:
        """Only GPU providers have this kernel: the witness is ai.onnx's GroupNormalization."""
        x, gamma, beta = normal(2, 6, 3, 4), normal(6), normal(6, seed=1)
        fed = {"x": x, "g": gamma, "b": beta}
        plain = helper.make_node("GroupNormalization", ["x", "g", "b"], ["y"], num_groups=2)
        (expected,) = check_against_onnxruntime(model_of([plain], fed, ["y"]), fed, rtol=1e-4, atol=1e-5)
        expected = expected / (1 + np.exp(-expected))
        order = (0, 2, 3, 1) if channels_last else (0, 1, 2, 3)
        fed["x"] = np.ascontiguousarray(x.transpose(order))
        options = {"groups": 2, "activation": 1, "channels_last": channels_last}
        (y,) = run_imported(import_model(model_with("GroupNorm", fed, ["y"], **options)), fed)
        np.testing.assert_allclose(y, expected.transpose(order), rtol=1e-4, atol=1e-5)


class TestFewBits:
    @pytest.mark.parametrize("zeros, bits", [("none", 4), ("packed", 4), ("float", 4), ("none", 8), ("packed", 8)])
    @pytest.mark.parametrize("k", [64, 80])
    def test_matmul(self, zeros: str, bits: int, k: int) -> None:
        n, block = 6, 32
        blocks = -(-k // block)
        rng = np.random.default_rng(0)
        inputs = {
            "a": normal(2, 3, k),
            "w": rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
            "s": np.abs(normal(n * blocks)),
        }
        if zeros == "packed":
            inputs["z"] = rng.integers(0, 256, n * -(-blocks * bits // 8)).astype(np.uint8)
        if zeros == "float":
            inputs["z"] = normal(n, blocks) + np.float32(7)
        held = [name for name in inputs if name != "a"]
        check("MatMulNBits", inputs, ["y"], held=held, N=n, K=k, bits=bits, block_size=block, rtol=1e-3)

    def test_matmul_bias(self) -> None:
        rng = np.random.default_rng(0)
        inputs = {
            "a": normal(3, 32),
            "w": rng.integers(0, 256, (6, 1, 16)).astype(np.uint8),
            "s": np.abs(normal(6)),
            "-z": NONE,
            "-g": NONE,
            "b": normal(6),
        }
        check("MatMulNBits", inputs, ["y"], held=("w", "s", "b"), N=6, K=32, bits=4, block_size=32, rtol=1e-3)

    @pytest.mark.parametrize("kind", [0, 1])
    def test_matmul_of_bitsandbytes(self, kind: int) -> None:
        rng = np.random.default_rng(0)
        inputs = {
            "a": normal(3, 32),
            "w": rng.integers(0, 256, 6 * 32 // 2).astype(np.uint8),
            "m": np.abs(normal(6 * 32 // 16)),
        }
        check("MatMulBnb4", inputs, ["y"], held=("w", "m"), N=6, K=32, block_size=16, quant_type=kind)

    @pytest.mark.parametrize("zeros", [False, True])
    def test_gather(self, zeros: bool) -> None:
        rng = np.random.default_rng(0)
        inputs: dict[str, Array] = {
            "w": rng.integers(0, 256, (7, 32)).astype(np.uint8),
            "i": np.array([[0, 6], [3, -1]], np.int64),
            "s": np.abs(normal(7, 4)),
        }
        if zeros:
            inputs["z"] = rng.integers(0, 256, (7, 2)).astype(np.uint8)
        options = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": 4}
        check("GatherBlockQuantized", inputs, ["y"], held=[n for n in inputs if n != "i"], **options)
