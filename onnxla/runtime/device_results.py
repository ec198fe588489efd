"""Results of a run that stay on the GPU, as arrays that PyTorch, CuPy, JAX and Numba take without a copy."""

import logging
import weakref
from typing import Any

import numpy as np

from onnxla.errors import DeviceError, InputError
from onnxla.runtime.device import Device
from onnxla.runtime.dlpack import CUDA, make_capsule
from onnxla.runtime.streams import LEGACY_STREAM
from onnxla.runtime.tensors import Array, TensorSignature

_LOG = logging.getLogger("onnxla")


class DeviceArray:
    """A dense array on a GPU: `torch.from_dlpack(a)`, `cupy.asarray(a)`, `a.numpy()`, or an input of another run.

    It is there in the order of streams: who takes it by one of the protocols is made to wait, on the device, for the
    run that writes it. Its memory is given back when nobody has it any more.
    """

    def __init__(self, device: Device, signature: TensorSignature) -> None:
        """Raises ResourceLimitError. To be called inside `device.active()`."""
        self.name, self.shape, self.dtype = signature.name, signature.shape, signature.dtype
        self._device, self._stream = device, device.stream
        self._mark: Any = None
        self.address = device.allocate(max(signature.bytes, 1))
        weakref.finalize(self, _free, device, self.address, max(signature.bytes, 1)).atexit = False

    def __repr__(self) -> str:
        return f"<DeviceArray {self.name} {self.dtype} {list(self.shape)} on {self._device.name}>"

    @property
    def device(self) -> str:
        """Such as `cuda:0`."""
        return self._device.name

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def written(self, mark: Any, stream: int) -> None:
        """Told by the run that writes it: it is there when `mark`, on `stream`, has been passed."""
        self._mark, self._stream = mark, stream

    def numpy(self) -> Array:
        """A copy on the host; waits for the run. Raises DeviceError where the run failed."""
        array = np.empty(self.shape, self.dtype)
        with self._device.active():
            stream = self._device.stream
            if self._mark is not None:
                self._device.wait_for(stream, self._mark)
            finish = self._device.download(self.address, array, stream)
            self._device.synchronize(self._device.mark(stream))
            finish()
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError(f"{self.name} is on {self.device}: numpy cannot have it without a copy")
        return self.numpy().astype(self.dtype if dtype is None else dtype, copy=False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.dtype.kind not in "biufc":
            raise AttributeError(f"__cuda_array_interface__ has no name for {self.dtype}; DLPack has for bfloat16")
        return {
            "data": (self.address, False),
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": None,
            "version": 3,
            "stream": self._stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self._device.number

    def __dlpack__(
        self, *, stream: int | None = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """Raises BufferError for what DLPack lets a consumer ask for and this array does not give."""
        if (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()) or copy:
            raise BufferError(f"{self.name} is shown where it is, on {self.device}, without a copy")
        if stream != -1 and self._mark is not None:
            with self._device.active():
                self._device.wait_for(stream or LEGACY_STREAM, self._mark)
        try:
            return make_capsule(self.address, self.shape, self.dtype, CUDA, self._device.number, self)
        except InputError as error:
            raise BufferError(str(error)) from error


def _free(device: Device, address: int, size: int) -> None:
    try:
        with device.active():
            device.free(address, size)
    except DeviceError as error:  # after a failed kernel the process can do nothing more on the GPU
        _LOG.warning("memory of %s is not given back: %s", device.name, error)
