"""Batch normalisation."""

from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import stablehlo_op
from onnxla.hlo.batch_norm import BatchNorm
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


def _settings(node: OperationView) -> BatchNorm:
    epsilon = node.attribute("epsilon")
    if not isinstance(epsilon, (int, float)):
        node.shape_error("the attribute epsilon is no number")
    return BatchNorm(float(epsilon), node.integer("feature_index"))


@stablehlo_op("batch_norm_inference")
def batch_norm_inference(node: OperationView, b: Builder) -> Instruction:
    return _settings(node).inference(b, *(node.operand(k) for k in range(5)))


@stablehlo_op("batch_norm_training")
def batch_norm_training(node: OperationView, b: Builder) -> tuple[Instruction, ...]:
    return _settings(node).training(b, *(node.operand(k) for k in range(3)))


@stablehlo_op("batch_norm_grad")
def batch_norm_grad(node: OperationView, b: Builder) -> tuple[Instruction, ...]:
    return _settings(node).gradient(b, *(node.operand(k) for k in range(5)))
