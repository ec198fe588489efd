"""ONNX's element type codes and HLO's element types."""

from onnx import TensorProto

from onnxla.errors import HloError
from onnxla.hlo import types
from onnxla.hlo.types import ElementType

_ELEMENT_OF_CODE: dict[int, ElementType] = {
    TensorProto.BOOL: types.PRED,
    TensorProto.INT2: types.S2,
    TensorProto.INT4: types.S4,
    TensorProto.INT8: types.S8,
    TensorProto.INT16: types.S16,
    TensorProto.INT32: types.S32,
    TensorProto.INT64: types.S64,
    TensorProto.UINT2: types.U2,
    TensorProto.UINT4: types.U4,
    TensorProto.UINT8: types.U8,
    TensorProto.UINT16: types.U16,
    TensorProto.UINT32: types.U32,
    TensorProto.UINT64: types.U64,
    TensorProto.FLOAT4E2M1: types.F4E2M1FN,
    TensorProto.FLOAT8E4M3FN: types.F8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ: types.F8E4M3FNUZ,
    TensorProto.FLOAT8E5M2: types.F8E5M2,
    TensorProto.FLOAT8E5M2FNUZ: types.F8E5M2FNUZ,
    TensorProto.FLOAT8E8M0: types.F8E8M0FNU,
    TensorProto.BFLOAT16: types.BF16,
    TensorProto.FLOAT16: types.F16,
    TensorProto.FLOAT: types.F32,
    TensorProto.DOUBLE: types.F64,
    TensorProto.COMPLEX64: types.C64,
    TensorProto.COMPLEX128: types.C128,
}
_CODE_OF_ELEMENT = {element: code for code, element in _ELEMENT_OF_CODE.items()}


def element_of_code(code: int) -> ElementType:
    """The element type of a TensorProto.DataType number. Raises HloError for strings and unknown numbers."""
    if code not in _ELEMENT_OF_CODE:
        known = code in TensorProto.DataType.values()
        raise HloError(f"no element type for ONNX data type {TensorProto.DataType.Name(code) if known else code}")
    return _ELEMENT_OF_CODE[code]


def code_of_element(element: ElementType) -> int:
    """The TensorProto.DataType number of an element type."""
    return _CODE_OF_ELEMENT[element]
