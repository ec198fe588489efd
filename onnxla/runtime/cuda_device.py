"""An NVIDIA GPU through the CUDA driver. The driver's bindings are imported when the device is first wanted.

The GPU's primary context is used, which PyTorch and CuPy use as well, so memory and streams are shared with them; it is
the calling thread's while a call needs it, and the one before is put back.
"""

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxla.errors import DeviceError, InputError, ResourceLimitError
from onnxla.runtime.cuda_driver import Gpu, checked, cuda_driver, described, driver_version, gpus, is_old
from onnxla.runtime.cuda_staging import LARGEST, Staging
from onnxla.runtime.device import DeviceCode, LibraryProduct
from onnxla.runtime.tensors import Array

if TYPE_CHECKING:
    from onnxla.runtime.cublaslt import CublasLt

_CAPTURING = threading.RLock()
"""Held while a graph is recorded: the GPU as a whole cannot be waited for then."""
_DEFERRED: "deque[Callable[[], None]]" = deque()
"""What the garbage collector wanted to free meanwhile."""


@dataclass
class Recording:
    """A CUDA graph, the one that is launched, and the node of each launch in it."""

    graph: Any
    launched: Any
    nodes: list[Any]


class Mark:
    """An event of CUDA's."""

    def __init__(self, event: Any, destroy: Callable[[Any], Any]) -> None:
        self.event = event
        weakref.finalize(self, destroy, event).atexit = False


class Kernels(dict[str, Any]):
    """Functions by name, and the module that they are in."""

    module: Any


class CudaDevice:
    """GPU `number` of the machine, with a stream of its own."""

    def __init__(self, number: int = 0) -> None:
        """Raises DeviceError that says what is missing and what to install, or which GPUs there are."""
        self._driver = driver = cuda_driver()
        found = gpus(driver)
        if not 0 <= number < len(found):
            names = "; ".join(map(str, found)) or "none"
            raise DeviceError(f"no GPU cuda:{number}: the CUDA driver sees {names}")
        self.gpu: Gpu = found[number]
        self.number, self.name, self.architecture = number, f"cuda:{number}", self.gpu.architecture
        self._device = self._call(driver.cuDeviceGet(number))
        self._context = self._call(driver.cuDevicePrimaryCtxRetain(self._device))
        weakref.finalize(self, driver.cuDevicePrimaryCtxRelease, self._device).atexit = False
        with self.active():
            stream = self._call(driver.cuStreamCreate(int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)))
        weakref.finalize(self, driver.cuStreamDestroy, stream).atexit = False  # before the context, as finalizers run
        self.stream = int(stream)
        self._staging = Staging(driver, self.passed, self.synchronize)
        self._library: CublasLt | None = None
        self._nodes: list[Any] | None = None
        """The nodes of launches while a graph is recorded."""

    @contextmanager
    def active(self) -> Iterator[None]:
        self._call(self._driver.cuCtxPushCurrent(self._context))
        try:
            yield
        finally:
            self._call(self._driver.cuCtxPopCurrent())

    # Memory

    def allocate(self, size: int) -> int:
        status, address = self._driver.cuMemAlloc(size)
        if status == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            result = self._driver.cuMemGetInfo()
            left = f"{result[1]} of {result[2]} are free" if result[0] == self._driver.CUresult.CUDA_SUCCESS else ""
            raise ResourceLimitError(f"{self.name} has no {size} bytes left{f': {left}' if left else ''}")
        self._call((status,))
        return int(address)

    def free(self, address: int, size: int) -> None:
        with _CAPTURING:
            if self._nodes is not None:
                _DEFERRED.append(lambda: self.free(address, size))
                return
            self._call(self._driver.cuCtxSynchronize())  # others may read it on streams that nobody named
            self._call(self._driver.cuMemFree(address))

    def upload(self, address: int, data: Array, stream: int) -> None:
        for start in range(0, data.nbytes, LARGEST):
            size = min(LARGEST, data.nbytes - start)
            buffer = self._staging.take(size)
            ctypes.memmove(buffer.address, data.ctypes.data + start, size)
            self._call(self._driver.cuMemcpyHtoDAsync(address + start, buffer.address, size, self._handle(stream)))
            self._staging.give_back(buffer, self.mark(stream))

    def download(self, address: int, data: Array, stream: int) -> Callable[[], None]:
        pieces = []
        for start in range(0, data.nbytes, LARGEST):
            size = min(LARGEST, data.nbytes - start)
            buffer = self._staging.take_free(size)
            host = data.ctypes.data + start if buffer is None else buffer.address  # without a buffer the caller waits
            self._call(self._driver.cuMemcpyDtoHAsync(host, address + start, size, self._handle(stream)))
            if buffer is not None:
                pieces.append((buffer, start, size))

        def finish() -> None:
            for buffer, start, size in pieces:
                ctypes.memmove(data.ctypes.data + start, buffer.address, size)
                self._staging.give_back(buffer, None)
            pieces.clear()

        return finish

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self._call(self._driver.cuMemcpyDtoDAsync(target, source, size, self._handle(stream)))

    def holder(self, address: int) -> int | None:
        attribute = self._driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        status, number = self._driver.cuPointerGetAttribute(attribute, address)
        return int(number) if status == self._driver.CUresult.CUDA_SUCCESS else None

    def trim(self) -> None:
        self._staging.release()

    # Code

    def load(self, code: DeviceCode) -> Mapping[str, Any]:
        """Machine code where there is some for this architecture, else PTX, which the driver compiles."""
        refused = []
        for what, image in _images(code, self.architecture):
            status, module = self._driver.cuModuleLoadData(image)
            if status == self._driver.CUresult.CUDA_SUCCESS:
                kernels = Kernels()
                kernels.module = module
                for name in code.kernels:
                    kernels[name] = self._call(self._driver.cuModuleGetFunction(module, name.encode()))
                    self._call(self._driver.cuFuncLoad(kernels[name]))  # now, not while a graph is recorded
                return kernels
            refused.append(f"{what}: {described(self._driver, status)}")
        raise DeviceError(self._why_unfit(code, refused))

    def unload(self, kernels: Mapping[str, Any]) -> None:
        if isinstance(kernels, Kernels):
            self._call(self._driver.cuModuleUnload(kernels.module))

    def _why_unfit(self, code: DeviceCode, refused: list[str]) -> str:
        made_for = ", ".join(code.cubins) or "no architecture"
        old = is_old(self._driver)
        return (
            f"{self.name} {self.gpu.name} is {self.architecture}, and the code is for {made_for} (and later ones, if "
            f"the driver compiles its PTX); tried {'; '.join(refused)}. The driver knows CUDA "
            f"{driver_version(self._driver)}{', which is older than the PTX' if old else ''}. Compile the model with "
            f"target_gpu={self.architecture} (--arch {self.architecture}){', or update the driver' if old else ''}"
        )

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[int], stream: int) -> None:
        handle = self._handle(stream)
        self._call(
            self._driver.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, handle, _parameters(arguments), 0)
        )
        if self._nodes is not None:
            status, _, _, _, last, *_ = self._driver.cuStreamGetCaptureInfo(handle)
            self._call((status,))
            (node,) = last  # the next node depends on the one of this launch
            self._nodes.append(node)

    def product(self, wanted: LibraryProduct) -> Any:
        if self._library is None:
            from onnxla.runtime.cublaslt import CublasLt

            self._library = CublasLt()
        return self._library.product(wanted)

    def multiply(self, product: Any, addresses: Sequence[int], stream: int) -> None:
        assert self._library is not None, "what is multiplied came from `product`"
        self._library.multiply(product, addresses, stream)

    # Recordings

    def record(self, work: Callable[[int], None]) -> Recording:
        """A CUDA graph of what is asked of the device's stream, ready to be launched."""
        driver, stream = self._driver, self._handle(self.stream)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        with _CAPTURING:
            self._call(driver.cuStreamBeginCapture(stream, mode))
            nodes: list[Any] = []
            self._nodes = nodes
            try:
                work(self.stream)
            except BaseException:
                driver.cuStreamEndCapture(stream)  # the stream is usable again; what went wrong is being raised
                raise
            finally:
                self._nodes = None
            graph = self._call(driver.cuStreamEndCapture(stream))
            while _DEFERRED:
                _DEFERRED.popleft()()
        return Recording(graph, self._call(driver.cuGraphInstantiate(graph, 0)), nodes)

    def revise(
        self, recording: Recording, number: int, kernel: Any, blocks: int, threads: int, arguments: Sequence[int]
    ) -> None:
        parameters = self._driver.CUDA_KERNEL_NODE_PARAMS()
        parameters.func = kernel
        parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = blocks, 1, 1
        parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = threads, 1, 1
        parameters.kernelParams = _parameters(arguments)
        node = recording.nodes[number]
        self._call(self._driver.cuGraphExecKernelNodeSetParams(recording.launched, node, parameters))

    def replay(self, recording: Recording, stream: int) -> None:
        self._call(self._driver.cuGraphLaunch(recording.launched, self._handle(stream)))

    def forget(self, recording: Recording) -> None:
        self._call(self._driver.cuGraphExecDestroy(recording.launched))
        self._call(self._driver.cuGraphDestroy(recording.graph))

    # Order

    def mark(self, stream: int) -> Mark:
        driver = self._driver
        event = self._call(driver.cuEventCreate(int(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)))
        mark = Mark(event, driver.cuEventDestroy)  # it lives until everything that waits for it has passed it
        self._call(driver.cuEventRecord(event, self._handle(stream)))
        return mark

    def wait_for(self, stream: int, mark: Mark) -> None:
        self._call(self._driver.cuStreamWaitEvent(self._handle(stream), mark.event, 0))

    def follow(self, stream: int, other: int) -> None:
        self.wait_for(stream, self.mark(other))

    def require_stream(self, stream: int) -> None:
        status, capturing = self._driver.cuStreamIsCapturing(self._handle(stream))
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise InputError(f"stream {stream:#x} is none of {self.name}: {described(self._driver, status)}")
        if capturing != self._driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE:
            raise InputError(f"stream {stream:#x} is being captured into a graph; onnxla makes graphs of its own")

    def passed(self, mark: Mark) -> bool:
        status = self._driver.cuEventQuery(mark.event)[0]
        if status == self._driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._call((status,))
        return True

    def synchronize(self, mark: Mark) -> None:
        self._call(self._driver.cuEventSynchronize(mark.event))

    def _handle(self, stream: int) -> Any:
        return self._driver.CUstream(stream)

    def _call(self, result: tuple[Any, ...]) -> Any:
        return checked(self._driver, result)


def _parameters(arguments: Sequence[int]) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Addresses as the bindings take the arguments of a kernel."""
    return tuple(arguments), (ctypes.c_void_p,) * len(arguments)


def _images(code: DeviceCode, architecture: str) -> Iterator[tuple[str, bytes]]:
    """What the GPU could run, the best first: its own machine code, that of an earlier GPU of its generation, PTX."""
    major, minor = divmod(int(architecture.removeprefix("sm_")), 10)
    fitting = []
    for name, cubin in code.cubins.items():
        digits = name.removeprefix("sm_")
        if digits.isdigit() and int(digits) // 10 == major and int(digits) % 10 <= minor:
            fitting.append((int(digits), name, cubin))
    for _, name, cubin in sorted(fitting, reverse=True):
        yield f"machine code for {name}", cubin
    suffixed = code.cubins.get(f"{architecture}a")
    if suffixed is not None:
        yield f"machine code for {architecture}a", suffixed
    yield "PTX", code.ptx.encode() + b"\0"
