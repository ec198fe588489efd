"""What a GPU has to offer a compiled model, and the launch list that a model is on it.

A `Device` is an NVIDIA GPU (`runtime/cuda_device.py`) or a simulation of one in the tests. Addresses are numbers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from onnxla.errors import ArtifactError
from onnxla.runtime.tensors import Array

_SPACES = ("input", "output", "weights", "arena")


class Device(Protocol):
    """One GPU. Streams are numbers, as CUDA's handles are: work of one stream happens in the order in which it was
    asked for, work of two streams in any order but for what `wait_for` and `follow` say. `name`, `number`, `stream`
    and `active` may be used at any time, all else inside `active()`.
    """

    name: str
    """As users name it: `cuda:1`."""
    number: int
    stream: int
    """A stream of its own."""

    def active(self) -> AbstractContextManager[None]:
        """The calling thread works on this GPU inside, and afterwards on the one that it worked on before."""

    def allocate(self, size: int) -> int:
        """The address of `size` bytes, aligned to 256. Raises ResourceLimitError."""

    def free(self, address: int, size: int) -> None:
        """Give back what `allocate(size)` gave, when all work of the GPU is done, whoever asked for it."""

    def upload(self, address: int, data: Array, stream: int) -> None:
        """Copy a dense array to the device; it may change as soon as this returns."""

    def download(self, address: int, data: Array, stream: int) -> Callable[[], None]:
        """Have bytes of the device copied; what is returned puts them into the dense array `data`, and is to be called
        when a mark made after this has been passed."""

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy between places on the device that do not overlap."""

    def load(self, code: "DeviceCode") -> Mapping[str, Any]:
        """The kernels of the code by name, as `launch` takes them. Raises DeviceError where none fits the device."""

    def unload(self, kernels: Mapping[str, Any]) -> None:
        """Give back what `load` gave, when all work is done."""

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[int], stream: int) -> None:
        """Run a kernel; `arguments` are addresses."""

    def product(self, wanted: "LibraryProduct") -> Any:
        """What `multiply` takes, for a product that a library computes in place of a kernel. Raises DeviceError where
        there is no such library, or it does not take the product."""

    def multiply(self, product: Any, addresses: Sequence[int], stream: int) -> None:
        """Have the library compute it; `addresses` are those of `LibraryProduct.places`."""

    def record(self, work: Callable[[int], None]) -> Any:
        """The launches and copies that `work` asks for on the stream that it is given: remembered, not done, for
        `replay` to do as often as wanted."""

    def revise(
        self, recording: Any, number: int, kernel: Any, blocks: int, threads: int, arguments: Sequence[int]
    ) -> None:
        """From the next replay on, launch `number` of the recording has other arguments; the rest is as recorded."""

    def replay(self, recording: Any, stream: int) -> None:
        """Do what was recorded, in its order."""

    def forget(self, recording: Any) -> None:
        """Give back what `record` gave."""

    def mark(self, stream: int) -> Any:
        """A mark behind what was asked of the stream so far."""

    def wait_for(self, stream: int, mark: Any) -> None:
        """Let what is asked of `stream` from now on come after the mark."""

    def follow(self, stream: int, other: int) -> None:
        """Let what is asked of `stream` from now on come after what others have asked of `other`, theirs."""

    def require_stream(self, stream: int) -> None:
        """Raise InputError for a stream of others that takes no runs."""

    def passed(self, mark: Any) -> bool:
        """Whether all work before the mark is done."""

    def synchronize(self, mark: Any) -> None:
        """Return when all work before the mark is done. Raises DeviceError where some of it failed."""

    def holder(self, address: int) -> int | None:
        """The number of the GPU whose memory the address is in; None where nobody knows."""

    def trim(self) -> None:
        """Give back memory that is kept for later uploads and downloads."""


@dataclass(frozen=True)
class DeviceCode:
    """A module of a program's kernels, compiled: machine code by architecture (`sm_80`), and PTX for newer ones."""

    kernels: tuple[str, ...]
    ptx: str
    cubins: Mapping[str, bytes]


@dataclass(frozen=True)
class Place:
    """Input or output `number` of the model, or byte `number` of the weights or the arena."""

    space: str
    number: int


@dataclass(frozen=True)
class LibraryMatrix:
    """`rows` by `columns`, column by column: the first element is `offset` elements behind `place`, a column begins
    `line` elements behind the one before it, the matrix of a batch `batch` elements behind that of the batch before."""

    place: Place
    element: str
    rows: int
    columns: int
    line: int
    batch: int
    offset: int
    is_transposed: bool
    """Whether its transpose is multiplied."""


@dataclass(frozen=True)
class LibraryProduct:
    """A product that cuBLASLt may compute: result = left right + bias in each of `batches`, summed in f32, with a
    number of `bias` for each row of the result."""

    batches: int
    left: LibraryMatrix
    right: LibraryMatrix
    result: LibraryMatrix
    bias: Place | None
    tf32: bool
    """Whether factors of f32 are rounded to TF32."""
    workspace: Place
    workspace_bytes: int

    @property
    def matrices(self) -> tuple[LibraryMatrix, LibraryMatrix, LibraryMatrix]:
        return self.left, self.right, self.result

    @property
    def places(self) -> tuple[Place, ...]:
        """As `Device.multiply` takes their addresses."""
        bias = () if self.bias is None else (self.bias,)
        return (*(m.place for m in self.matrices), self.workspace, *bias)


@dataclass(frozen=True)
class LaunchStep:
    kernel: str
    blocks: int
    threads: int
    arguments: tuple[Place, ...]
    library: LibraryProduct | None = None
    """What may be done in place of the kernel."""


@dataclass(frozen=True)
class CopyStep:
    source: Place
    target: Place
    bytes: int


@dataclass(frozen=True)
class LoopStep:
    """Run `condition`; while it leaves a nonzero byte in `predicate`, run `body` and `condition` again.

    Where `rounds` is known, `body` runs so often, and nobody has to ask.
    """

    condition: "Steps"
    predicate: Place
    body: "Steps"
    rounds: int | None = None


@dataclass(frozen=True)
class BranchStep:
    """Run one of `cases`: a pred index takes case 0 when true; an s32 index out of range takes the last."""

    index: Place
    is_pred: bool
    cases: tuple["Steps", ...]


DeviceStep: TypeAlias = LaunchStep | CopyStep | LoopStep | BranchStep
Steps: TypeAlias = tuple[DeviceStep, ...]


def read_objects(objects: Sequence[bytes]) -> tuple[tuple[DeviceCode, ...], Steps]:
    """The sections of a GPU program: the launch list (JSON), then for each module it names PTX and a cubin for each
    architecture it names.

    Raises ArtifactError where they are malformed.
    """
    try:
        header = json.loads(objects[0])
        architectures, modules = header["architectures"], [tuple(names) for names in header["modules"]]
        stride = 1 + len(architectures)
        if len(objects) != 1 + len(modules) * stride:
            raise ValueError(f"{len(modules)} modules in {len(objects) - 1} sections")
        codes = []
        for k, kernels in enumerate(modules):
            ptx, *cubins = objects[1 + k * stride : 1 + (k + 1) * stride]
            codes.append(DeviceCode(kernels, ptx.decode(), dict(zip(architectures, cubins, strict=True))))
        return tuple(codes), _steps(header["steps"], {name for kernels in modules for name in kernels})
    except (LookupError, TypeError, ValueError) as error:
        raise ArtifactError(f"the launch list is malformed: {type(error).__name__}: {error}") from error


def _steps(rows: Any, kernels: set[str]) -> Steps:
    return tuple(_step(row, kernels) for row in rows)


def _step(row: Mapping[str, Any], kernels: set[str]) -> DeviceStep:
    if "launch" in row:
        if row["launch"] not in kernels:
            raise ValueError(f"no kernel {row['launch']!r}")
        places = tuple(_place(p) for p in row["arguments"])
        library = _library(row["library"]) if "library" in row else None
        return LaunchStep(row["launch"], _count(row["blocks"]), _count(row["threads"]), places, library)
    if "copy" in row:
        return CopyStep(_place(row["source"]), _place(row["target"]), _count(row["copy"]))
    if "loop" in row:
        rounds = None if "rounds" not in row else _count(row["rounds"])
        return LoopStep(_steps(row["condition"], kernels), _place(row["loop"]), _steps(row["body"], kernels), rounds)
    cases = tuple(_steps(case, kernels) for case in row["cases"])
    if not cases:
        raise ValueError("a branch without cases")
    return BranchStep(_place(row["branch"]), bool(row["pred"]), cases)


def _library(row: Mapping[str, Any]) -> LibraryProduct:
    left, right, result = map(_matrix, row["matrices"])
    bias = None if row["bias"] is None else _place(row["bias"])
    workspace = _place(row["workspace"])
    sizes = _count(row["batches"]), _count(row["workspace_bytes"])
    return LibraryProduct(sizes[0], left, right, result, bias, bool(row["tf32"]), workspace, sizes[1])


def _matrix(row: Mapping[str, Any]) -> LibraryMatrix:
    if row["element"] not in ("f32", "f16", "bf16"):
        raise ValueError(f"no library multiplies {row['element']!r}")
    numbers = {name: _count(row[name]) for name in ("rows", "columns", "line", "batch", "offset")}
    return LibraryMatrix(_place(row["place"]), row["element"], **numbers, is_transposed=bool(row["transposed"]))


def _place(row: Any) -> Place:
    space, number = row
    if space not in _SPACES:
        raise ValueError(f"no space {space!r}")
    return Place(space, _count(number))


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"{value!r} is not a size")
    return value
