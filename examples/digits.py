"""Train a small convolutional network on scikit-learn's handwritten digits and write it as ONNX.

    python examples/digits.py

writes `digits.onnx` (the model) and `digits.npz` (ten images that it was not trained on, one of each digit, and what
they show) beside this file. Needs numpy, scikit-learn and onnx; takes a few seconds. Both files are in the repository,
so this only has to run to change them.

The network: two times convolution 3x3, bias, ReLU and max pooling 2x2, then a dense layer and a softmax.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

Array: TypeAlias = npt.NDArray[Any]

SEED = 7
EPOCHS = 30
BATCH = 32
LEARNING_RATE = 0.1
MOMENTUM = 0.9
FOLDER = Path(__file__).parent


@dataclass
class Convolution:
    """3x3, padded to keep the size, with a bias, ReLU and max pooling 2x2 behind it."""

    weight: Array
    """[outputs, inputs, 3, 3]"""
    bias: Array

    def forward(self, x: Array) -> Array:
        n, _, height, width = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * height * width, -1)
        y = self.columns @ self.weight.reshape(len(self.weight), -1).T + self.bias
        y = y.reshape(n, height // 2, 2, width // 2, 2, -1)
        pooled = y.max((2, 4))
        self.chosen = (y == pooled[:, :, None, :, None]) & (y > 0)
        return np.asarray(np.maximum(pooled, 0).transpose(0, 3, 1, 2))

    def backward(self, gradient: Array) -> Array:
        """From the gradient of the result to that of the input; keeps those of weight and bias."""
        n, outputs, rows, columns = gradient.shape
        spread = gradient.transpose(0, 2, 3, 1)[:, :, None, :, None] * self.chosen
        at_columns = spread.reshape(-1, outputs)
        self.gradients = [(at_columns.T @ self.columns).reshape(self.weight.shape), at_columns.sum(0)]
        windows = (at_columns @ self.weight.reshape(outputs, -1)).reshape(n, rows * 2, columns * 2, -1, 3, 3)
        padded = np.zeros((n, windows.shape[3], rows * 2 + 2, columns * 2 + 2))
        for i in range(3):
            for j in range(3):
                padded[:, :, i : i + rows * 2, j : j + columns * 2] += windows[..., i, j].transpose(0, 3, 1, 2)
        return np.asarray(padded[:, :, 1:-1, 1:-1])

    @property
    def parameters(self) -> list[Array]:
        return [self.weight, self.bias]


@dataclass
class Dense:
    weight: Array
    """[inputs, outputs]"""
    bias: Array

    def forward(self, x: Array) -> Array:
        self.shape, self.flat = x.shape, x.reshape(len(x), -1)
        return self.flat @ self.weight + self.bias

    def backward(self, gradient: Array) -> Array:
        self.gradients = [self.flat.T @ gradient, gradient.sum(0)]
        return (gradient @ self.weight.T).reshape(self.shape)

    @property
    def parameters(self) -> list[Array]:
        return [self.weight, self.bias]


class Network:
    """The layers, trained by stochastic gradient descent with momentum."""

    def __init__(self, rng: np.random.Generator) -> None:
        def start(*shape: int, inputs: int) -> Array:
            return rng.normal(0, np.sqrt(2 / inputs), shape)

        self.first = Convolution(start(16, 1, 3, 3, inputs=9), np.zeros(16))
        self.second = Convolution(start(32, 16, 3, 3, inputs=144), np.zeros(32))
        self.last = Dense(start(128, 10, inputs=128), np.zeros(10))
        self.layers: list[Convolution | Dense] = [self.first, self.second, self.last]
        self.momenta = [np.zeros_like(p) for layer in self.layers for p in layer.parameters]

    def scores(self, images: Array) -> Array:
        for layer in self.layers:
            images = layer.forward(images)
        return images

    def learn(self, images: Array, labels: Array) -> None:
        """One step on a batch, along the gradient of the cross entropy."""
        gradient = softmax(self.scores(images))
        gradient[np.arange(len(labels)), labels] -= 1
        gradient /= len(labels)
        for layer in reversed(self.layers):
            gradient = layer.backward(gradient)
        parameters = [p for layer in self.layers for p in layer.parameters]
        gradients = [g for layer in self.layers for g in layer.gradients]
        for parameter, momentum, step in zip(parameters, self.momenta, gradients, strict=True):
            momentum[:] = MOMENTUM * momentum - LEARNING_RATE * step
            parameter += momentum

    def digits(self, images: Array) -> Array:
        return np.asarray(self.scores(images).argmax(1))


def softmax(scores: Array) -> Array:
    exponentials = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(1, keepdims=True))


def batches(count: int, rng: np.random.Generator) -> Iterator[Array]:
    order = rng.permutation(count)
    for start in range(0, count, BATCH):
        yield order[start : start + BATCH]


def onnx_model(network: Network) -> onnx.ModelProto:
    """image float[batch,1,8,8], 0 to 1 -> probabilities float[batch,10], digit int64[batch]."""
    weights = {
        "conv1.weight": network.first.weight,
        "conv1.bias": network.first.bias,
        "conv2.weight": network.second.weight,
        "conv2.bias": network.second.bias,
        "dense.weight": network.last.weight,
        "dense.bias": network.last.bias,
    }
    same: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    half: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], "/conv1/Conv", **same),
        helper.make_node("Relu", ["conv1"], ["relu1"], "/conv1/Relu"),
        helper.make_node("MaxPool", ["relu1"], ["pool1"], "/conv1/MaxPool", **half),
        helper.make_node("Conv", ["pool1", "conv2.weight", "conv2.bias"], ["conv2"], "/conv2/Conv", **same),
        helper.make_node("Relu", ["conv2"], ["relu2"], "/conv2/Relu"),
        helper.make_node("MaxPool", ["relu2"], ["pool2"], "/conv2/MaxPool", **half),
        helper.make_node("Flatten", ["pool2"], ["flat"], "/Flatten", axis=1),
        helper.make_node("Gemm", ["flat", "dense.weight", "dense.bias"], ["scores"], "/dense/Gemm"),
        helper.make_node("Softmax", ["scores"], ["probabilities"], "/Softmax", axis=1),
        helper.make_node("ArgMax", ["probabilities"], ["digit"], "/ArgMax", axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10]),
            helper.make_tensor_value_info("digit", TensorProto.INT64, ["batch"]),
        ],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "onnxla examples/digits.py"
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    data = load_digits()
    images = data.images[:, None] / 16
    train, test, train_labels, test_labels = train_test_split(images, data.target, test_size=0.2, random_state=SEED)
    rng = np.random.default_rng(SEED)
    network = Network(rng)
    for _ in range(EPOCHS):
        for batch in batches(len(train), rng):
            network.learn(train[batch], train_labels[batch])
    right = network.digits(test) == test_labels
    print(f"{right.mean():.1%} of {len(test)} images that it was not trained on are recognised")
    onnx.save(onnx_model(network), FOLDER / "digits.onnx")
    sample = [int(np.flatnonzero((test_labels == digit) & right)[0]) for digit in range(10)]
    np.savez(FOLDER / "digits.npz", image=test[sample].astype(np.float32), digit=test_labels[sample].astype(np.int64))


if __name__ == "__main__":
    main()
