"""An NVIDIA GPU through the CUDA driver. The driver's bindings are imported when the device is first wanted.

The device's primary context is used, so memory may be shared with other libraries of the process.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxla.errors import DeviceError, ResourceLimitError
from onnxla.runtime.device import DeviceCode
from onnxla.runtime.program import Array


class CudaDevice:
    """GPU `number` of the machine, with a stream of its own."""

    def __init__(self, number: int = 0) -> None:
        """Raises DeviceError that says what is missing and what to install."""
        self._driver = driver = _driver()
        count = self._call(driver.cuDeviceGetCount())
        if not 0 <= number < count:
            raise DeviceError(f"no GPU {number}: the CUDA driver sees {count}")
        self._device = self._call(driver.cuDeviceGet(number))
        self._context = self._call(driver.cuDevicePrimaryCtxRetain(self._device))
        self._enter()
        attribute = driver.CUdevice_attribute
        parts = (
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
        major, minor = (self._call(driver.cuDeviceGetAttribute(part, self._device)) for part in parts)
        self.architecture = f"sm_{major}{minor}"
        self._stream = self._call(driver.cuStreamCreate(int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)))

    def allocate(self, size: int) -> int:
        self._enter()
        status, address = self._driver.cuMemAlloc(size)
        if status == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise ResourceLimitError(f"the GPU has no {size} bytes left")
        self._call((status,))
        return int(address)

    def free(self, address: int, size: int) -> None:
        self._enter()
        self.synchronize()
        self._call(self._driver.cuMemFree(address))

    def upload(self, address: int, data: Array) -> None:
        if data.nbytes:
            self._enter()
            self._call(self._driver.cuMemcpyHtoDAsync(address, data.ctypes.data, data.nbytes, self._stream))
            self.synchronize()  # the caller may change `data` as soon as this returns

    def download(self, address: int, data: Array) -> None:
        if data.nbytes:
            self._enter()
            self._call(self._driver.cuMemcpyDtoHAsync(data.ctypes.data, address, data.nbytes, self._stream))
            self.synchronize()

    def copy(self, target: int, source: int, size: int) -> None:
        self._enter()
        self._call(self._driver.cuMemcpyDtoDAsync(target, source, size, self._stream))

    def load(self, code: DeviceCode) -> Mapping[str, Any]:
        """Machine code where there is some for this architecture, else PTX, which the driver compiles."""
        self._enter()
        image = code.cubins.get(self.architecture) or code.ptx.encode() + b"\0"
        status, module = self._driver.cuModuleLoadData(image)
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(
                f"this GPU ({self.architecture}) cannot run the code, which is for {', '.join(code.cubins)} and later "
                f"({status.name}); compile the model with target_gpu={self.architecture}, or update the driver"
            )
        return {name: self._call(self._driver.cuModuleGetFunction(module, name.encode())) for name in code.kernels}

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[int]) -> None:
        self._enter()
        parameters = (tuple(arguments), (ctypes.c_void_p,) * len(arguments))
        self._call(self._driver.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, self._stream, parameters, 0))

    def record(self, work: Callable[[], None]) -> Any:
        """A CUDA graph of the stream's work, ready to be launched."""
        self._enter()
        driver = self._driver
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._call(driver.cuStreamBeginCapture(self._stream, mode))
        try:
            work()
        finally:
            graph = self._call(driver.cuStreamEndCapture(self._stream))
        recording = self._call(driver.cuGraphInstantiate(graph, 0))
        self._call(driver.cuGraphDestroy(graph))
        return recording

    def replay(self, recording: Any) -> None:
        self._enter()
        self._call(self._driver.cuGraphLaunch(recording, self._stream))

    def forget(self, recording: Any) -> None:
        self._enter()
        self._call(self._driver.cuGraphExecDestroy(recording))

    def wait_for(self, stream: int) -> None:
        self._enter()
        driver = self._driver
        event = self._call(driver.cuEventCreate(int(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)))
        self._call(driver.cuEventRecord(event, driver.CUstream(stream)))
        self._call(driver.cuStreamWaitEvent(self._stream, event, 0))
        self._call(driver.cuEventDestroy(event))  # it lives until the stream has passed it

    def synchronize(self) -> None:
        self._enter()
        self._call(self._driver.cuStreamSynchronize(self._stream))

    def _enter(self) -> None:
        """Make the context that of the calling thread."""
        self._call(self._driver.cuCtxSetCurrent(self._context))

    def _call(self, result: tuple[Any, ...]) -> Any:
        status, *values = result
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(f"the CUDA driver reports {status.name}")
        return values[0] if values else None


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceError(
            f"the CUDA bindings are missing ({error}); install them with `pip install onnxla[cuda]`"
        ) from error
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:  # raised by the first call, not by the import
        raise DeviceError(
            "no NVIDIA driver (libcuda) on this machine; install the driver of the GPU, or compile with target='cpu'"
        ) from error
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the NVIDIA driver finds no usable GPU ({status.name}); `nvidia-smi` shows what it sees")
    return driver
