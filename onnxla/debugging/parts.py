"""The arrays in what a model gives: sequences, maps and optionals taken apart, to be compared, written and printed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxla.runtime.tensors import Array


def flat_outputs(outputs: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays in outputs by name."""
    return {part: array for name, value in outputs.items() for part, array in parts_of(name, value).items()}


def parts_of(name: str, value: Any) -> dict[str, Array]:
    """`name` for an array, `name[0]`, ... for a sequence, nothing for None.

    A sequence of maps, as ZipMap makes it, is `name.keys` [keys] and `name.values` [rows, keys].
    """
    if value is None:
        return {}
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        keys = list(value[0])
        scores = [[row.get(key, np.nan) for key in keys] for row in value]
        return {f"{name}.keys": np.array(keys), f"{name}.values": np.array(scores, np.float32)}
    if isinstance(value, (list, tuple)):
        return flat_outputs({f"{name}[{i}]": element for i, element in enumerate(value)})
    array = np.asarray(value)
    return {name: array.astype(str) if array.dtype == object else array}
