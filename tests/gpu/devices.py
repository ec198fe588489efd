"""Devices for tests that run on the simulated one here and on a GPU where there is one."""

from typing import Any

import pytest

from onnxla.errors import DeviceError
from onnxla.runtime.cuda_device import CudaDevice
from onnxla.runtime.device import Device
from tests.gpu.simulated_device import SimulatedDevice

BOTH: list[Any] = ["simulated", pytest.param("cuda", marks=pytest.mark.needs_gpu)]
"""Parameters of a fixture or a test."""


def device_named(kind: str) -> Device:
    """A device of the kind; the test is skipped where there is no GPU."""
    if kind == "simulated":
        return SimulatedDevice()
    try:
        return CudaDevice()
    except DeviceError as error:
        pytest.skip(f"no GPU: {error}")
