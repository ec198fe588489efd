"""Products by cuBLASLt, NVIDIA's library, through `nvmath.bindings.cublasLt`, which is imported when a program first
has a product for it.

The calls are those of `cublasLtMatmul`'s documentation: a descriptor of the product, a layout for each matrix, the
algorithm that the library's own heuristic names first. They are made when a program is loaded, so that a run, and a
graph that is recorded, asks for nothing but the product itself.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onnxla.errors import DeviceError
from onnxla.runtime.device import LibraryMatrix, LibraryProduct
from onnxla.runtime.tensors import Array, dtype_of

_ALIGNMENT = 16
"""Bytes to a multiple of which everything that the runtime places begins."""


class Product:
    """A product as the library knows it: descriptors, layouts and the algorithm."""

    def __init__(self, wanted: LibraryProduct, descriptor: int, layouts: Sequence[int], found: Any) -> None:
        self.wanted, self.descriptor, self.layouts = wanted, descriptor, tuple(layouts)
        self.found = found
        """The heuristic's result, whose first field is the algorithm."""


class CublasLt:
    """The library, on the GPU whose context is current."""

    def __init__(self) -> None:
        """Raises DeviceError that says what is missing."""
        self._library, self._cublas, self._types = _bindings()
        try:
            self._handle = self._library.create()
        except (RuntimeError, self._library.cuBLASLtError) as error:  # RuntimeError where the library is not found
            raise DeviceError(
                f"cuBLASLt does not start ({error}); install it with `pip install onnxla[cublas]`"
            ) from error
        weakref.finalize(self, self._library.destroy, self._handle).atexit = False
        self._one, self._zero = np.ones(1, np.float32), np.zeros(1, np.float32)

    def product(self, wanted: LibraryProduct) -> Product:
        """Raises DeviceError where the library has no way to compute it."""
        library, types = self._library, self._cublas.ComputeType
        compute = types.COMPUTE_32F_FAST_TF32 if wanted.tf32 else types.COMPUTE_32F
        try:
            descriptor = library.matmul_desc_create(compute, self._types.CUDA_R_32F)
            matrices = (wanted.left, wanted.right, wanted.result, wanted.result)  # the third is added zero times
            layouts = [self._layout(matrix, wanted.batches) for matrix in matrices]
            product = Product(wanted, descriptor, layouts, library.MatmulHeuristicResult())
            weakref.finalize(product, _destroy, library, descriptor, product.layouts).atexit = False
            for name, matrix in (("TRANSA", wanted.left), ("TRANSB", wanted.right)):
                operation = self._cublas.Operation.T if matrix.is_transposed else self._cublas.Operation.N
                self._describe(descriptor, name, operation)
            if wanted.bias is not None:
                self._describe(descriptor, "EPILOGUE", library.Epilogue.BIAS)
                self._describe(descriptor, "BIAS_POINTER", _ALIGNMENT)  # not null, until it is known
            self._choose(product)
        except (RuntimeError, library.cuBLASLtError) as error:
            raise DeviceError(f"cuBLASLt does not take a product: {error}") from error
        return product

    def multiply(self, product: Product, addresses: Sequence[int], stream: int) -> None:
        """`addresses` of left, right, result, workspace and, where there is one, bias: of the buffers, in which the
        matrices may begin later."""
        wanted, library = product.wanted, self._library
        left, right, result = (
            address + matrix.offset * dtype_of(matrix.element).itemsize
            for address, matrix in zip(addresses[:3], wanted.matrices, strict=True)
        )
        try:
            if wanted.bias is not None:
                self._describe(product.descriptor, "BIAS_POINTER", addresses[4])
            library.matmul(
                self._handle,
                product.descriptor,
                self._one.ctypes.data,
                left,
                product.layouts[0],
                right,
                product.layouts[1],
                self._zero.ctypes.data,
                result,
                product.layouts[2],
                result,
                product.layouts[3],
                product.found.ptr,
                addresses[3],
                wanted.workspace_bytes,
                stream,
            )
        except (RuntimeError, library.cuBLASLtError) as error:
            raise DeviceError(f"cuBLASLt reports {error}") from error

    def _layout(self, matrix: LibraryMatrix, batches: int) -> int:
        library, element = self._library, getattr(self._types, _TYPES[matrix.element])
        layout: int = library.matrix_layout_create(element, matrix.rows, matrix.columns, matrix.line)
        if batches > 1:
            for name, value in (("BATCH_COUNT", batches), ("STRIDED_BATCH_OFFSET", matrix.batch)):
                attribute = library.MatrixLayoutAttribute[name]
                dtype = library.get_matrix_layout_attribute_dtype(attribute)
                _set(library.matrix_layout_set_attribute, layout, attribute, dtype, value)
        return layout

    def _describe(self, descriptor: int, name: str, value: int) -> None:
        library, attribute = self._library, self._library.MatmulDescAttribute[name]
        dtype = library.get_matmul_desc_attribute_dtype(attribute)
        _set(library.matmul_desc_set_attribute, descriptor, attribute, dtype, value)

    def _choose(self, product: Product) -> None:
        """The algorithm that the library names first for what is known of sizes, alignment and workspace."""
        library, wanted = self._library, product.wanted
        preference = library.matmul_preference_create()
        try:
            wishes = {"MAX_WORKSPACE_BYTES": wanted.workspace_bytes}
            for letter, matrix in zip("ABCD", (*wanted.matrices, wanted.result), strict=True):
                wishes[f"MIN_ALIGNMENT_{letter}_BYTES"] = _alignment(matrix)
            for name, value in wishes.items():
                attribute = library.MatmulPreferenceAttribute[name]
                dtype = library.get_matmul_preference_attribute_dtype(attribute)
                _set(library.matmul_preference_set_attribute, preference, attribute, dtype, value)
            count = np.zeros(1, np.int32)
            library.matmul_algo_get_heuristic(
                self._handle, product.descriptor, *product.layouts, preference, 1, product.found.ptr, count.ctypes.data
            )
        finally:
            library.matmul_preference_destroy(preference)
        if not count[0]:
            raise DeviceError("cuBLASLt has no algorithm for a product of these sizes")


_TYPES = {"f32": "CUDA_R_32F", "f16": "CUDA_R_16F", "bf16": "CUDA_R_16BF"}


def _bindings() -> tuple[Any, Any, Any]:
    """The bindings of cuBLASLt, those of cuBLAS, which have its enumerations, and those of CUDA's types."""
    try:
        from nvmath import CudaDataType
        from nvmath.bindings import cublas, cublasLt
    except ImportError as error:
        raise DeviceError(
            f"the bindings of cuBLASLt are missing ({error}); install them with `pip install onnxla[cublas]`"
        ) from error
    return cublasLt, cublas, CudaDataType


def _set(setter: Callable[..., Any], handle: int, attribute: int, dtype: Any, value: int) -> None:
    held: Array = np.array([value], dtype)
    setter(handle, attribute, held.ctypes.data, held.nbytes)


def _alignment(matrix: LibraryMatrix) -> int:
    """Bytes to a multiple of which the first element lies."""
    return math.gcd(_ALIGNMENT, matrix.offset * dtype_of(matrix.element).itemsize)


def _destroy(library: Any, descriptor: int, layouts: Sequence[int]) -> None:
    for layout in layouts:
        library.matrix_layout_destroy(layout)
    library.matmul_desc_destroy(descriptor)
