"""Element types as onnxruntime spells them, from numpy's dtypes and ONNX's numbers."""

from typing import Any

import numpy as np
from onnx import helper

from onnxla.compat.errors import InvalidArgument, compat_error
from onnxla.frontends.onnx.signature import code_name


def dtype_of_element_type(element_type: Any) -> np.dtype[Any]:
    """The dtype for what onnxruntime's functions take: a numpy type, or ONNX's number of one."""
    if isinstance(element_type, int):
        try:
            return np.dtype(helper.tensor_dtype_to_np_dtype(element_type))
        except KeyError as error:
            raise compat_error(InvalidArgument, f"{element_type} is no element type of ONNX") from error
    dtype: np.dtype[Any] = np.dtype(element_type)
    return dtype


def element_type_of(dtype: np.dtype[Any]) -> int:
    """ONNX's number. Raises InvalidArgument where there is none."""
    if dtype.kind in "OSU":
        return 8
    try:
        return int(helper.np_dtype_to_tensor_dtype(dtype.newbyteorder("=")))
    except ValueError as error:
        raise compat_error(InvalidArgument, f"ONNX has no element type for {dtype}") from error


def type_of_value(value: Any) -> str:
    """`tensor(float)`, `seq(tensor(float))`, `map(string,tensor(float))`: the type of a value at a model's edge."""
    if value is None:
        return "optional"
    if isinstance(value, dict):
        key, inside = next(iter(value.items()), (0, 0.0))
        kind = "string" if isinstance(key, str) else "int64"
        return f"map({kind},tensor({code_name(element_type_of(np.asarray(inside, _number(inside)).dtype))}))"
    if isinstance(value, (list, tuple)):
        return f"seq({type_of_value(value[0])})" if value else "seq"
    return f"tensor({code_name(element_type_of(value.dtype))})"


def _number(value: Any) -> Any:
    """Maps hold Python's numbers: float32, as ZipMap makes them, or int64."""
    return np.float32 if isinstance(value, float) else None
