"""A `Device` without a GPU: kernels run in the PTX simulator, and every fault is an error.

Work is done as soon as it is asked for, on whatever stream: `tests/gpu/pretended_driver.py` is for what depends on
that.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from onnxla.errors import DeviceError
from onnxla.runtime.device import DeviceCode, LibraryProduct
from onnxla.runtime.tensors import Array
from tests.gpu.ptx_memory import GlobalMemory
from tests.gpu.ptx_simulator import simulate
from tests.gpu.ptx_text import PtxKernel, parse_ptx

Launch = tuple[PtxKernel, int, int, Sequence[int]]


class KernelFault(Exception):
    """A kernel did what the hardware leaves undefined."""


class Recording:
    """Launches and copies, the launches among them by number."""

    def __init__(self) -> None:
        self.actions: list[Launch | tuple[int, int, int]] = []

    def place_of(self, number: int) -> int:
        """Where launch `number` is among the actions."""
        return [k for k, action in enumerate(self.actions) if len(action) == 4][number]


class SimulatedDevice:
    """Runs the PTX of a program, not its machine code."""

    def __init__(self, number: int = 0) -> None:
        self.number, self.name, self.stream = number, f"cuda:{number}", 64
        self.memory = GlobalMemory()
        self.launches: list[str] = []
        """Names of the kernels that ran."""
        self.recording: Recording | None = None
        self.replays = self.forgotten = self.revised = self.unloaded = 0
        self.awaited: list[int] = []
        """Streams of others that were waited for."""

    def active(self) -> AbstractContextManager[None]:
        return nullcontext()

    def allocate(self, size: int) -> int:
        assert self.recording is None, "an allocation cannot be recorded"
        return self.memory.allocate(size)

    def free(self, address: int, size: int) -> None:
        self.memory.free(address, size)

    def upload(self, address: int, data: Array, stream: int) -> None:
        assert self.recording is None, "an upload cannot be recorded"
        self.memory.write(address, data)

    def download(self, address: int, data: Array, stream: int) -> Callable[[], None]:
        assert self.recording is None, "a download cannot be recorded"
        data[...] = self.memory.read(address, data.nbytes).view(data.dtype).reshape(data.shape)
        return lambda: None

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        if self.recording is not None:
            self.recording.actions.append((target, source, size))
            return
        self.memory.write(target, self.memory.read(source, size))

    def load(self, code: DeviceCode) -> Mapping[str, PtxKernel]:
        return parse_ptx(code.ptx)

    def unload(self, kernels: Mapping[str, PtxKernel]) -> None:
        self.unloaded += 1

    def launch(self, kernel: PtxKernel, blocks: int, threads: int, arguments: Sequence[int], stream: int) -> None:
        if self.recording is not None:
            self.recording.actions.append((kernel, blocks, threads, arguments))
            return
        self.launches.append(kernel.name)
        reports = simulate(kernel, self.memory, blocks, threads, arguments)
        if reports:
            raise KernelFault(f"{kernel.name}: {dict(reports)}")

    def product(self, wanted: LibraryProduct) -> object:
        raise DeviceError("no library is simulated")

    def multiply(self, product: object, addresses: Sequence[int], stream: int) -> None:
        raise AssertionError("no library is simulated")

    def record(self, work: Callable[[int], None]) -> Recording:
        """Nothing else may be asked for meanwhile."""
        self.recording = recorded = Recording()
        work(self.stream)
        self.recording = None
        return recorded

    def revise(
        self, recording: Recording, number: int, kernel: PtxKernel, blocks: int, threads: int, arguments: Sequence[int]
    ) -> None:
        self.revised += 1
        recording.actions[recording.place_of(number)] = (kernel, blocks, threads, arguments)

    def replay(self, recording: Recording, stream: int) -> None:
        self.replays += 1
        for action in recording.actions:
            if len(action) == 4:
                self.launch(*action, stream)
            else:
                self.copy(*action, stream)

    def forget(self, recording: Recording) -> None:
        recording.actions.clear()
        self.forgotten += 1

    def mark(self, stream: int) -> int:
        return stream

    def wait_for(self, stream: int, mark: int) -> None:
        """Everything is done already."""

    def follow(self, stream: int, other: int) -> None:
        self.awaited.append(other)

    def require_stream(self, stream: int) -> None:
        """Takes any."""

    def passed(self, mark: int) -> bool:
        return True

    def synchronize(self, mark: int) -> None:
        """Every launch has ended."""

    def holder(self, address: int) -> int | None:
        return self.number

    def trim(self) -> None:
        """Keeps nothing."""
