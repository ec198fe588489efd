"""What the compiler hands to the runtime, and what an artifact stores: signatures, native code, weights, sizes.

A `Program` is one specialisation of a model: static shapes, one native entry. Nothing here knows HLO or LLVM.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import ArtifactError
from onnxla.runtime.padding import Padding
from onnxla.runtime.results import Result

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# The element's name in HLO: its name in a signature (onnxruntime's words), and its dtype in numpy or ml_dtypes.
_ELEMENTS = {
    "pred": ("bool", "bool"),
    "s2": ("int2", "int2"),
    "s4": ("int4", "int4"),
    "s8": ("int8", "int8"),
    "s16": ("int16", "int16"),
    "s32": ("int32", "int32"),
    "s64": ("int64", "int64"),
    "u2": ("uint2", "uint2"),
    "u4": ("uint4", "uint4"),
    "u8": ("uint8", "uint8"),
    "u16": ("uint16", "uint16"),
    "u32": ("uint32", "uint32"),
    "u64": ("uint64", "uint64"),
    "f4e2m1fn": ("float4e2m1", "float4_e2m1fn"),
    "f8e4m3fn": ("float8e4m3fn", "float8_e4m3fn"),
    "f8e4m3fnuz": ("float8e4m3fnuz", "float8_e4m3fnuz"),
    "f8e5m2": ("float8e5m2", "float8_e5m2"),
    "f8e5m2fnuz": ("float8e5m2fnuz", "float8_e5m2fnuz"),
    "f8e8m0fnu": ("float8e8m0", "float8_e8m0fnu"),
    "bf16": ("bfloat16", "bfloat16"),
    "f16": ("float16", "float16"),
    "f32": ("float", "float32"),
    "f64": ("double", "float64"),
    "c64": ("complex64", "complex64"),
    "c128": ("complex128", "complex128"),
}
_MAX_RANK = 64


@cache
def dtype_of(element: str) -> np.dtype[Any]:
    """The dtype that carries `element`. ml_dtypes is imported only for the types numpy lacks."""
    if element not in _ELEMENTS:
        raise ArtifactError(f"unknown element type {element!r}")
    name = _ELEMENTS[element][1]
    if hasattr(np, name) or name == "bool":
        return np.dtype(name)
    import ml_dtypes

    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def element_of_dtype(dtype: np.dtype[Any]) -> str:
    """The inverse of `dtype_of`; byte order does not count. Raises ArtifactError for other dtypes."""
    for element, (_, name) in _ELEMENTS.items():
        if dtype.name == name:
            return element
    raise ArtifactError(f"no element type for dtype {dtype}")


@dataclass(frozen=True)
class TensorSignature:
    """One input or output: its name in the model, element type (HLO's name) and static shape."""

    name: str
    element: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        dtype_of(self.element)
        if len(self.shape) > _MAX_RANK or any(n < 0 for n in self.shape) or self.bytes >= 1 << 62:
            raise ArtifactError(f"{self.name}: impossible shape {list(self.shape)}")

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.element)

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def type(self) -> str:
        """The type as onnxruntime spells it, such as `tensor(float)`."""
        return onnx_type(self.element)

    def __str__(self) -> str:
        return f"{self.name} {self.element}[{','.join(map(str, self.shape))}]"


def onnx_type(element: str) -> str:
    """`tensor(float)` for `f32`."""
    return f"tensor({_ELEMENTS[element][0]})"


_ELEMENT_OF_TYPE = {onnx_type(element): element for element in _ELEMENTS}


def dtype_of_onnx_type(text: str) -> np.dtype[Any] | None:
    """The dtype of `tensor(float)`; None for a type whose values are not tensors of numbers."""
    element = _ELEMENT_OF_TYPE.get(text)
    return None if element is None else dtype_of(element)


GPU_TRIPLE = "nvptx64-nvidia-cuda"
"""LLVM's name of NVIDIA's platform, by which a `Program` for a GPU is known."""


@dataclass(frozen=True)
class Step:
    """One step of the plan, a row of the profile. The steps inside a loop or branch follow it, one deeper."""

    name: str
    op: str
    source: str
    """The node of the user's model it comes from."""
    bytes: int = 0
    """Bytes it reads and writes."""
    flops: int = 0
    """Floating-point operations; 0 where nobody counted."""
    depth: int = 0
    """How many loops and branches it is inside of."""
    kernel: str = ""
    """The symbol of its code, where it is a kernel: equal code has one symbol."""
    tasks: int = 0
    """Parts of a kernel that may run at the same time; on a GPU its blocks."""
    effort: int = 0
    """All that a core does in it, as floating-point operations of multiply-adds that would take as long."""
    weight_bytes: int = 0
    """Those of its bytes that are weights."""
    also: tuple[str, ...] = ()
    """Further nodes of the model that are computed in it."""


@dataclass(frozen=True)
class Program:
    """Native code of one specialisation and all it needs to run."""

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    objects: tuple[bytes, ...] = field(repr=False)
    """Object files; one of them defines `onnxla_run`."""
    thread_pool: bytes = field(repr=False)
    """Object code of the thread pool."""
    weights: Array = field(repr=False)
    """Packed weights: uint8, read-only, the base aligned to 64 bytes; may be mapped from a file."""
    arena_bytes: int
    steps: tuple[Step, ...]
    """In the order they run, those inside loops and branches behind them."""
    triple: str
    """LLVM's name of the platform the objects are for."""
    cpu: str
    features: tuple[str, ...]
    """CPU features without which the code must not run."""
    state: tuple[TensorSignature, ...] = ()
    """The variables that it changes: the native code takes them after the inputs, and gives them after the outputs."""
    results: tuple[Result, ...] = ()
    """How the model's outputs are made of `outputs`; empty where they are the same."""
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Inputs of strings: native code takes their places in this list, or its length for those that are not there."""
    constants: Mapping[str, Array] = field(default_factory=dict)
    """Values of inputs of the model that this program was made for; they are no inputs of it."""
    padding: Padding | None = None
    """How it takes fewer rows than it was made for; None where it does not."""
    intermediate_bytes: int = 0
    """Sum of the sizes of all intermediate values, for comparison with the arena."""
    instruction_count: int = 0
    """HLO instructions of the entry after the passes."""
    kernel_count: int = 0
    """Different kernels."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """What the compiler made on the way, by stage: `hlo` as imported, `optimized_hlo`, `plan`, ..."""
