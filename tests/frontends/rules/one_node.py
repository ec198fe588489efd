"""A model of one node, checked against onnxruntime."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import helper

from onnxla.hlo.types import Array
from tests.frontends.witness import check_against_onnxruntime, model_of


def check_node(
    op_type: str,
    *inputs: npt.ArrayLike | None,
    opset: int = 21,
    constant: Sequence[int] = (),
    outputs: int = 1,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    **attributes: Any,
) -> list[Array]:
    """Import one node with these inputs, those named in `constant` as initializers, and compare with onnxruntime.

    None stands for an optional input that is left out. Returns our outputs.
    """
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    arrays = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True) if value is not None}
    fixed = {f"x{i}": arrays.pop(f"x{i}") for i in constant}
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, **attributes)
    model = model_of([node], arrays, results, initializers=fixed, opset=opset)
    return check_against_onnxruntime(model, arrays, rtol, atol)


def given(**attributes: Any) -> dict[str, Any]:
    """The attributes that are not None."""
    return {name: value for name, value in attributes.items() if value is not None}


def normal(*shape: int, dtype: npt.DTypeLike = np.float32, seed: int = 0) -> Array:
    """Normally distributed numbers, the same for the same arguments."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)
