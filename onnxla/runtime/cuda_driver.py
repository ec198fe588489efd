"""The CUDA driver and the GPUs that it sees. The bindings are imported when they are first asked for.

What is missing is said in one way everywhere: what was found, and what to install.
"""

from dataclasses import dataclass
from typing import Any

from onnxla.errors import DeviceError

_NEWER_PTX = 13
"""The CUDA version that NVRTC's PTX is of: older drivers do not read it."""


@dataclass(frozen=True)
class Gpu:
    """A GPU, by the driver's own word."""

    number: int
    name: str
    architecture: str
    """Such as `sm_90`."""
    memory: int
    """Bytes it has."""

    def __str__(self) -> str:
        return f"cuda:{self.number} {self.name} ({self.architecture}, {self.memory >> 20} MiB)"


def cuda_driver() -> Any:
    """`cuda.bindings.driver`, initialised. Raises DeviceError that says what is missing and what to install."""
    driver = _bindings()
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:  # raised by the first call, not by the import
        raise DeviceError(
            "no NVIDIA driver (libcuda) on this machine; install the driver of the GPU, or compile with target='cpu'"
        ) from error
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the NVIDIA driver finds no usable GPU ({status.name}); `nvidia-smi` shows what it sees")
    return driver


def checked(driver: Any, result: tuple[Any, ...]) -> Any:
    """The one value that a call of the driver gives, None where it gives none. Raises DeviceError for its failure."""
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the CUDA driver reports {described(driver, status)}")
    return values[0] if values else None


def described(driver: Any, status: Any) -> str:
    """`CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)`."""
    found, text = driver.cuGetErrorString(status)
    plain = text.decode(errors="replace") if found == driver.CUresult.CUDA_SUCCESS and text else ""
    return f"{status.name} ({plain})" if plain else str(status.name)


def gpus(driver: Any) -> list[Gpu]:
    """Every GPU that the driver sees."""
    return [_gpu(driver, number) for number in range(checked(driver, driver.cuDeviceGetCount()))]


def driver_version(driver: Any) -> str:
    """The newest CUDA that the driver knows, such as `13.0`."""
    number = int(checked(driver, driver.cuDriverGetVersion()))
    return f"{number // 1000}.{number % 1000 // 10}"


def is_old(driver: Any) -> bool:
    """Whether the driver is older than the PTX that onnxla's kernels come with."""
    return int(driver_version(driver).split(".")[0]) < _NEWER_PTX


def _gpu(driver: Any, number: int) -> Gpu:
    device = checked(driver, driver.cuDeviceGet(number))
    name = checked(driver, driver.cuDeviceGetName(128, device)).split(b"\0")[0].decode(errors="replace")
    attribute = driver.CUdevice_attribute
    parts = (
        attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    )
    major, minor = (checked(driver, driver.cuDeviceGetAttribute(part, device)) for part in parts)
    return Gpu(number, name, f"sm_{major}{minor}", int(checked(driver, driver.cuDeviceTotalMem(device))))


def _bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DeviceError(
            f"the CUDA bindings are missing ({error}); install them with `pip install onnxla[cuda]`"
        ) from error
    return driver
