"""Batch normalisation in operations, as StableHLO and XLA define it: for inference, for training, and its gradient."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import require


@dataclass(frozen=True)
class BatchNorm:
    """`feature` is the dimension that keeps its elements apart; `epsilon` is added to variances."""

    epsilon: float
    feature: int

    def inference(
        self,
        b: Builder,
        x: Instruction,
        scale: Instruction,
        offset: Instruction,
        mean: Instruction,
        variance: Instruction,
    ) -> Instruction:
        """(x - mean) / sqrt(variance + epsilon) * scale + offset"""
        wide = self._wide(b, x, scale, offset, mean, variance)
        deviation = wide(self._deviation(b, variance))
        normal = b.divide(b.subtract(x, wide(mean)), deviation)
        return b.add(b.multiply(normal, wide(scale)), wide(offset))

    def training(
        self, b: Builder, x: Instruction, scale: Instruction, offset: Instruction
    ) -> tuple[Instruction, Instruction, Instruction]:
        """The result with the batch's own mean and variance, and those."""
        wide = self._wide(b, x, scale, offset)
        mean = self._mean(b, x)
        centred = b.subtract(x, wide(mean))
        variance = self._mean(b, b.multiply(centred, centred))
        return self.inference(b, x, scale, offset, mean, variance), mean, variance

    def gradient(
        self, b: Builder, x: Instruction, scale: Instruction, mean: Instruction, variance: Instruction, g: Instruction
    ) -> tuple[Instruction, Instruction, Instruction]:
        """The derivatives by x, scale and offset, where `g` is that by the result of `training`."""
        wide = self._wide(b, x, scale, mean, variance)
        require(g.type == x.type, f"the gradient is {g.type}, and the operand {x.type}")
        centred, deviation = b.subtract(x, wide(mean)), self._deviation(b, variance)
        total = self._sum(b, g)
        along = self._sum(b, b.multiply(g, centred))
        count = b.full_like(x, self._count(x))
        rest = b.subtract(b.multiply(g, count), wide(total))
        spread = b.add(variance, b.full_like(variance, self.epsilon))
        rest = b.subtract(rest, b.divide(b.multiply(wide(along), centred), wide(spread)))
        of_x = b.multiply(b.divide(b.divide(wide(scale), wide(deviation)), count), rest)
        return of_x, b.divide(along, deviation), total

    def _wide(self, b: Builder, x: Instruction, *features: Instruction) -> Callable[[Instruction], Instruction]:
        require(0 <= self.feature < len(x.shape), f"feature_index={self.feature} is out of range for {x.type}")
        kind = x.tensor_type.with_shape((x.shape[self.feature],))
        for value in features:
            require(value.type == kind, f"expected {kind} for each feature of {x.type}, got {value.type}")
        return lambda value: b.broadcast(value, x.shape, (self.feature,))

    def _deviation(self, b: Builder, variance: Instruction) -> Instruction:
        return b.unary("sqrt", b.add(variance, b.full_like(variance, self.epsilon)))

    def _count(self, x: Instruction) -> int:
        return math.prod(n for d, n in enumerate(x.shape) if d != self.feature)

    def _sum(self, b: Builder, x: Instruction) -> Instruction:
        return b.reduce_by("add", x, [d for d in range(len(x.shape)) if d != self.feature])

    def _mean(self, b: Builder, x: Instruction) -> Instruction:
        total = self._sum(b, x)
        return b.divide(total, b.full_like(total, self._count(x)))
