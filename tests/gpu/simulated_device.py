"""A `Device` without a GPU: kernels run in the PTX simulator, and every fault is an error."""

from collections.abc import Callable, Mapping, Sequence

from onnxla.runtime.device import DeviceCode
from onnxla.runtime.program import Array
from tests.gpu.ptx_memory import GlobalMemory
from tests.gpu.ptx_simulator import simulate
from tests.gpu.ptx_text import PtxKernel, parse_ptx


class KernelFault(Exception):
    """A kernel did what the hardware leaves undefined."""


class SimulatedDevice:
    """Runs the PTX of a program, not its machine code."""

    def __init__(self) -> None:
        self.memory = GlobalMemory()
        self.launches: list[str] = []
        """Names of the kernels that ran."""
        self.recording: list[Callable[[], None]] | None = None
        self.replays = self.forgotten = 0
        self.awaited: list[int] = []
        """Streams of others that were waited for."""

    def allocate(self, size: int) -> int:
        return self.memory.allocate(size)

    def free(self, address: int, size: int) -> None:
        self.memory.free(address, size)

    def upload(self, address: int, data: Array) -> None:
        assert self.recording is None, "an upload cannot be recorded"
        self.memory.write(address, data)

    def download(self, address: int, data: Array) -> None:
        assert self.recording is None, "a download cannot be recorded"
        data[...] = self.memory.read(address, data.nbytes).view(data.dtype).reshape(data.shape)

    def copy(self, target: int, source: int, size: int) -> None:
        if self.recording is not None:
            self.recording.append(lambda: self.copy(target, source, size))
            return
        self.memory.write(target, self.memory.read(source, size))

    def load(self, code: DeviceCode) -> Mapping[str, PtxKernel]:
        return parse_ptx(code.ptx)

    def launch(self, kernel: PtxKernel, blocks: int, threads: int, arguments: Sequence[int]) -> None:
        if self.recording is not None:
            self.recording.append(lambda: self.launch(kernel, blocks, threads, arguments))
            return
        self.launches.append(kernel.name)
        reports = simulate(kernel, self.memory, blocks, threads, arguments)
        if reports:
            raise KernelFault(f"{kernel.name}: {dict(reports)}")

    def record(self, work: Callable[[], None]) -> list[Callable[[], None]]:
        """Nothing else may be asked for meanwhile."""
        self.recording = []
        work()
        recorded, self.recording = self.recording, None
        return recorded

    def replay(self, recording: list[Callable[[], None]]) -> None:
        self.replays += 1
        for action in recording:
            action()

    def forget(self, recording: list[Callable[[], None]]) -> None:
        recording.clear()
        self.forgotten += 1

    def wait_for(self, stream: int) -> None:
        self.awaited.append(stream)

    def synchronize(self) -> None:
        """Every launch has ended when it returns."""
