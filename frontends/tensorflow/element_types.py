"""TensorFlow's data types and HLO's element types."""

from onnxla.errors import HloError
from onnxla.frontends.tensorflow.messages import DATA_TYPES, REFERENCE
from onnxla.hlo import types
from onnxla.hlo.types import ElementType

_ELEMENT_OF_NAME: dict[str, ElementType] = {
    "FLOAT": types.F32,
    "DOUBLE": types.F64,
    "HALF": types.F16,
    "BFLOAT16": types.BF16,
    "INT8": types.S8,
    "INT16": types.S16,
    "INT32": types.S32,
    "INT64": types.S64,
    "UINT8": types.U8,
    "UINT16": types.U16,
    "UINT32": types.U32,
    "UINT64": types.U64,
    "INT4": types.S4,
    "UINT4": types.U4,
    "INT2": types.S2,
    "UINT2": types.U2,
    "BOOL": types.PRED,
    "COMPLEX64": types.C64,
    "COMPLEX128": types.C128,
    "FLOAT8_E4M3FN": types.F8E4M3FN,
    "FLOAT8_E4M3FNUZ": types.F8E4M3FNUZ,
    "FLOAT8_E5M2": types.F8E5M2,
    "FLOAT8_E5M2FNUZ": types.F8E5M2FNUZ,
    "FLOAT4_E2M1FN": types.F4E2M1FN,
}

STRING, RESOURCE, VARIANT = (DATA_TYPES.index(name) for name in ("STRING", "RESOURCE", "VARIANT"))


def code_name(code: int) -> str:
    """`float32`, `int64`, `string`: a data type as TensorFlow's users write it. References count as their target."""
    code -= REFERENCE if code > REFERENCE else 0
    name = DATA_TYPES[code].lower() if 0 < code < len(DATA_TYPES) else f"type {code}"
    return {"float": "float32", "double": "float64", "half": "float16"}.get(name, name)


def element_of_code(code: int) -> ElementType:
    """The element type of a DataType number. Raises HloError for strings, resources, quantised and unknown types."""
    code -= REFERENCE if code > REFERENCE else 0
    element = _ELEMENT_OF_NAME.get(DATA_TYPES[code]) if 0 <= code < len(DATA_TYPES) else None
    if element is None:
        raise HloError(f"no element type for TensorFlow's {code_name(code)}")
    return element
