"""A stand-in for `nvmath.bindings.cublasLt` beside `pretended_driver.py`: numpy computes what `CublasLt` asks for, from
the descriptors alone.

- Every call goes to the real bindings first, which convert all arguments and then fail to find libcuda. Enumerations,
  and the sizes of attributes, are theirs.
- Products are done in their stream, on the memory of the pretended driver, where access out of bounds is an error. The
  workspace is overwritten, so that what lies in it by mistake is lost.
- Descriptors are held to the rules of cuBLASLt's documentation: types that go together, sizes that fit, leading
  dimensions, an algorithm that was chosen for the same product, the alignment that was promised for it.

What it cannot show: which algorithms the library has, how it rounds, how fast it is.
"""

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from nvmath import CudaDataType
from nvmath.bindings import cublas
from nvmath.bindings import cublasLt as real

from onnxla.hlo.types import BF16
from onnxla.runtime.tensors import Array
from tests.gpu.pretended_driver import Misuse, PretendedDriver, has_driver, is_collecting

_DTYPES: dict[Any, Any] = {
    CudaDataType.CUDA_R_32F: np.float32,
    CudaDataType.CUDA_R_16F: np.float16,
    CudaDataType.CUDA_R_16BF: BF16.dtype,
}
_FITTING = {("f4", "f4"), ("f2", "f2"), ("f2", "f4"), ("bf", "bf"), ("bf", "f4")}
"""Types of the factors and of the result, of those of which sums are f32."""


class _Thing(dict[str, Any]):
    """A descriptor, layout or preference: attributes by name."""

    def __init__(self, kind: str, **attributes: Any) -> None:
        super().__init__(attributes)
        self.kind = kind


class PretendedCublasLt:
    """Takes the place of the module; `driver` has the memory and the streams."""

    def __init__(self, driver: PretendedDriver) -> None:
        self.driver, self.products = driver, 0
        self.refuses = ""
        """Why no product has an algorithm; empty where all have one."""
        self.missing = False
        """Whether the library is not installed."""
        self._verified = not has_driver()
        self._things: dict[int, _Thing] = {}
        self._chosen: dict[int, tuple[Any, ...]] = {}

    def kept(self) -> int:
        """Descriptors, layouts and preferences that were not destroyed."""
        return len(self._things)

    def __getattr__(self, name: str) -> Any:
        found = getattr(real, name)
        if isinstance(found, type) or name.startswith("get_"):
            return found
        answer = object.__getattribute__(self, f"_{name}")

        def call(*arguments: Any) -> Any:
            self._verify(name, arguments)
            return answer(*arguments)

        return call

    def _verify(self, name: str, arguments: Sequence[Any]) -> None:
        if not self._verified or is_collecting():
            return
        try:
            getattr(real, name)(*arguments)
        except RuntimeError as error:
            if "libcuda" not in str(error) and type(error).__name__ != "FunctionNotFoundError":
                raise
        else:
            raise Misuse(f"{name} was carried out by a library")

    def _new(self, kind: str, **attributes: Any) -> int:
        handle = (max(self._things, default=4096)) + 64
        self._things[handle] = _Thing(kind, **attributes)
        return handle

    def _at(self, handle: int, kind: str) -> _Thing:
        thing = self._things.get(handle)
        if thing is None or thing.kind != kind:
            raise Misuse(f"{handle:#x} is no {kind}")
        return thing

    def _assign(self, thing: _Thing, attribute: Any, dtype: Any, buffer: int, size: int) -> None:
        if size != np.dtype(dtype).itemsize:
            raise Misuse(f"{attribute.name} has {np.dtype(dtype).itemsize} bytes, not {size}")
        thing[attribute.name] = np.frombuffer(ctypes.string_at(buffer, size), dtype)[0].item()

    def _create(self) -> int:
        if self.missing:
            raise RuntimeError("libcublasLt.so is not found")
        return self._new("handle")

    def _destroy(self, handle: int) -> None:
        del self._things[handle]

    _matmul_desc_destroy = _matrix_layout_destroy = _matmul_preference_destroy = _destroy

    def _matmul_desc_create(self, compute: int, scale: int) -> int:
        assert scale == CudaDataType.CUDA_R_32F
        return self._new("descriptor", compute=cublas.ComputeType(compute), TRANSA=0, TRANSB=0, EPILOGUE=1)

    def _matmul_desc_set_attribute(self, descriptor: int, attribute: Any, buffer: int, size: int) -> None:
        dtype = real.get_matmul_desc_attribute_dtype(attribute)
        self._assign(self._at(descriptor, "descriptor"), real.MatmulDescAttribute(attribute), dtype, buffer, size)

    def _matrix_layout_create(self, element: int, rows: int, columns: int, line: int) -> int:
        if line < rows:
            raise Misuse(f"columns of {rows} elements begin {line} elements apart")
        return self._new(
            "layout",
            dtype=np.dtype(_DTYPES[CudaDataType(element)]),
            rows=rows,
            columns=columns,
            line=line,
            BATCH_COUNT=1,
            STRIDED_BATCH_OFFSET=0,
        )

    def _matrix_layout_set_attribute(self, layout: int, attribute: Any, buffer: int, size: int) -> None:
        dtype = real.get_matrix_layout_attribute_dtype(attribute)
        self._assign(self._at(layout, "layout"), real.MatrixLayoutAttribute(attribute), dtype, buffer, size)

    def _matmul_preference_create(self) -> int:
        alignments = {f"MIN_ALIGNMENT_{letter}_BYTES": 256 for letter in "ABCD"}
        return self._new("preference", MAX_WORKSPACE_BYTES=0, **alignments)

    def _matmul_preference_set_attribute(self, preference: int, attribute: Any, buffer: int, size: int) -> None:
        dtype = real.get_matmul_preference_attribute_dtype(attribute)
        thing = self._at(preference, "preference")
        self._assign(thing, real.MatmulPreferenceAttribute(attribute), dtype, buffer, size)

    def _matmul_algo_get_heuristic(self, handle: int, descriptor: int, *rest: int) -> None:
        *layouts, preference, requested, results, count = rest
        self._at(handle, "handle")
        product = self._product(descriptor, layouts)
        wishes = self._at(preference, "preference")
        assert requested == 1
        found = 0 if self.refuses else 1
        ctypes.memmove(count, np.array([found], np.int32).ctypes.data, 4)
        number = len(self._chosen) + 1
        alignments = [wishes[f"MIN_ALIGNMENT_{letter}_BYTES"] for letter in "ABCD"]
        self._chosen[number] = (product, alignments, wishes["MAX_WORKSPACE_BYTES"])
        ctypes.memmove(results, np.array([number], np.uint64).ctypes.data, 8)

    def _product(self, descriptor: int, handles: Sequence[int]) -> tuple[Any, ...]:
        """All that an algorithm is chosen by."""
        of, (a, b, c, d) = self._at(descriptor, "descriptor"), [self._at(h, "layout") for h in handles]
        (m, k), (inner, n) = (
            (x["columns"], x["rows"]) if of[f"TRANS{letter}"] else (x["rows"], x["columns"])
            for x, letter in ((a, "A"), (b, "B"))
        )
        if (m, n) != (d["rows"], d["columns"]) or inner != k or dict(c) != dict(d):
            raise Misuse(f"a product of {m} by {k} and {inner} by {n} gives {d['rows']} by {d['columns']}")
        if len({x["BATCH_COUNT"] for x in (a, b, d)}) != 1:
            raise Misuse("matrices have different batches")
        names = [
            re.sub("bfloat16", "bf", x["dtype"].name).replace("float32", "f4").replace("float16", "f2")
            for x in (a, b, d)
        ]
        if names[0] != names[1] or (names[0], names[2]) not in _FITTING:
            raise Misuse(f"no product has types {names}")
        described = {name: value for name, value in of.items() if name != "BIAS_POINTER"}
        return described, dict(a), dict(b), dict(d)

    def _matmul(self, handle: int, descriptor: int, alpha: int, *rest: int) -> None:
        a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm, workspace, size, stream = rest
        self._at(handle, "handle")
        assert (ctypes.c_float.from_address(alpha).value, ctypes.c_float.from_address(beta).value) == (1, 0) and c == d
        of = dict(self._at(descriptor, "descriptor"))
        product = self._product(descriptor, (a_layout, b_layout, c_layout, d_layout))
        chosen, alignments, most = self._chosen[ctypes.c_uint64.from_address(algorithm).value]
        if chosen != product or size > most:
            raise Misuse("the algorithm was chosen for another product")
        if any(address % alignment for address, alignment in zip((a, b, c, d), alignments, strict=True)):
            raise Misuse(f"{[hex(x) for x in (a, b, c, d)]} are not aligned to {alignments}")
        _, left, right, result = product

        def work() -> None:
            self.products += 1
            self.driver.memory.write(workspace, np.full(size, 0x5B, np.uint8))
            x, y = (self._matrices(address, layout) for address, layout in ((a, left), (b, right)))
            x, y = (m.swapaxes(1, 2) if of[f"TRANS{n}"] else m for m, n in ((x, "A"), (y, "B")))
            if of["compute"] is cublas.ComputeType.COMPUTE_32F_FAST_TF32:
                x, y = _to_tf32(x), _to_tf32(y)
            sums = (x.astype(np.float64) @ y.astype(np.float64)).astype(np.float32)
            if of["EPILOGUE"] == real.Epilogue.BIAS:
                bytes = self.driver.memory.read(of["BIAS_POINTER"], result["rows"] * result["dtype"].itemsize)
                sums = sums + bytes.view(result["dtype"]).astype(np.float32)[:, None]
            else:
                assert of["EPILOGUE"] == real.Epilogue.DEFAULT
            for batch, matrix in enumerate(sums.astype(result["dtype"])):
                for column in range(result["columns"]):
                    at = batch * result["STRIDED_BATCH_OFFSET"] + column * result["line"]
                    values = np.ascontiguousarray(matrix[:, column]).view(np.uint8)
                    self.driver.memory.write(d + at * result["dtype"].itemsize, values)

        self.driver._ask(stream, work)

    def _matrices(self, address: int, layout: dict[str, Any]) -> Array:
        """[batch, row, column]; exactly the bytes of its columns are read."""
        itemsize = layout["dtype"].itemsize
        matrices = np.empty((layout["BATCH_COUNT"], layout["rows"], layout["columns"]), layout["dtype"])
        for batch in range(len(matrices)):
            for column in range(layout["columns"]):
                at = address + (batch * layout["STRIDED_BATCH_OFFSET"] + column * layout["line"]) * itemsize
                matrices[batch, :, column] = self.driver.memory.read(at, layout["rows"] * itemsize).view(
                    layout["dtype"]
                )
        return matrices


def _to_tf32(values: Array) -> Array:
    """Rounded to 10 bits of mantissa, to nearest."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x1000) & np.uint32(0xFFFFE000)).view(np.float32)
