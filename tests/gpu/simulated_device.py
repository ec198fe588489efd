"""A `Device` without a GPU: kernels run in the PTX simulator, and every fault is an error."""

from collections.abc import Mapping, Sequence

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

    def allocate(self, size: int) -> int:
        return self.memory.allocate(size)

    def free(self, address: int, size: int) -> None:
        self.memory.free(address, size)

    def upload(self, address: int, data: Array) -> None:
        self.memory.write(address, data)

    def download(self, address: int, data: Array) -> None:
        data[...] = self.memory.read(address, data.nbytes).view(data.dtype).reshape(data.shape)

    def copy(self, target: int, source: int, size: int) -> None:
        self.memory.write(target, self.memory.read(source, size))

    def load(self, code: DeviceCode) -> Mapping[str, PtxKernel]:
        return parse_ptx(code.ptx)

    def launch(self, kernel: PtxKernel, blocks: int, threads: int, arguments: Sequence[int]) -> None:
        self.launches.append(kernel.name)
        reports = simulate(kernel, self.memory, blocks, threads, arguments)
        if reports:
            raise KernelFault(f"{kernel.name}: {dict(reports)}")

    def synchronize(self) -> None:
        """Every launch has ended when it returns."""
