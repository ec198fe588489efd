"""What `compile` is asked: its arguments, checked and in one form."""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from onnxla.config import CompileOptions, Limits
from onnxla.runtime.tensors import Array


@dataclass(frozen=True)
class Cut:
    """Which part of a TensorFlow model is meant, and values of its variables."""

    signature: str | None = None
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    state: Mapping[str, npt.ArrayLike] | None = None


@dataclass(frozen=True)
class Call:
    """One call."""

    model: Any
    """As `onnxla.api.Model`."""
    targets: tuple[str, ...]
    shapes: Mapping[str, tuple[int, ...]]
    dims: Mapping[str, tuple[int, ...]]
    """The sizes that each dimension is to have."""
    constants: Mapping[str, Array]
    options: CompileOptions
    limits: Limits
    num_threads: int | None
    folder: str | os.PathLike[str] | None
    cut: Cut
    fallback: str | None
    device: str | None

    def each_size(self) -> Iterator[dict[str, int]]:
        """Every combination of the sizes of the dimensions."""
        for combination in itertools.product(*self.dims.values()):
            yield dict(zip(self.dims, combination, strict=True))

    def single_sizes(self) -> dict[str, int]:
        """The dimensions that have one size."""
        return {name: given[0] for name, given in self.dims.items() if len(given) == 1}
