"""What a GPU has to offer a compiled model, and the launch list that a model is on it.

A `Device` is an NVIDIA GPU (`runtime/cuda_device.py`) or a simulation of one in the tests. Addresses are numbers; all
work of a device happens in the order in which it was asked for.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from onnxla.errors import ArtifactError
from onnxla.runtime.program import Array

_SPACES = ("input", "output", "weights", "arena")


class Device(Protocol):
    """One GPU."""

    def allocate(self, size: int) -> int:
        """The address of `size` bytes, aligned to 256. Raises ResourceLimitError."""

    def free(self, address: int, size: int) -> None:
        """Give back what `allocate(size)` gave."""

    def upload(self, address: int, data: Array) -> None:
        """Copy a dense array to the device."""

    def download(self, address: int, data: Array) -> None:
        """Fill a dense array from the device, when all work before it is done."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy between places on the device that do not overlap."""

    def load(self, code: "DeviceCode") -> Mapping[str, Any]:
        """The kernels of the code by name, as `launch` takes them. Raises DeviceError where none fits the device."""

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[int]) -> None:
        """Run a kernel; `arguments` are addresses."""

    def record(self, work: Callable[[], None]) -> Any:
        """The launches and copies that `work` asks for: remembered, not done, for `replay` to do as often as wanted."""

    def replay(self, recording: Any) -> None:
        """Do what was recorded, in its order."""

    def forget(self, recording: Any) -> None:
        """Give back what `record` gave."""

    def wait_for(self, stream: int) -> None:
        """Let what is asked for from now on come after what others have asked of one of their streams."""

    def synchronize(self) -> None:
        """Return when all work is done."""


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
class LaunchStep:
    kernel: str
    blocks: int
    threads: int
    arguments: tuple[Place, ...]


@dataclass(frozen=True)
class CopyStep:
    source: Place
    target: Place
    bytes: int


@dataclass(frozen=True)
class LoopStep:
    """Run `condition`; while it leaves a nonzero byte in `predicate`, run `body` and `condition` again."""

    condition: "Steps"
    predicate: Place
    body: "Steps"


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
        return LaunchStep(row["launch"], _count(row["blocks"]), _count(row["threads"]), places)
    if "copy" in row:
        return CopyStep(_place(row["source"]), _place(row["target"]), _count(row["copy"]))
    if "loop" in row:
        return LoopStep(_steps(row["condition"], kernels), _place(row["loop"]), _steps(row["body"], kernels))
    cases = tuple(_steps(case, kernels) for case in row["cases"])
    if not cases:
        raise ValueError("a branch without cases")
    return BranchStep(_place(row["branch"]), bool(row["pred"]), cases)


def _place(row: Any) -> Place:
    space, number = row
    if space not in _SPACES:
        raise ValueError(f"no space {space!r}")
    return Place(space, _count(number))


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"{value!r} is not a size")
    return value
