"""Run one program on a GPU: inputs up, the launch list, outputs down.

Weights are uploaded once and memory is allocated once. Runs of one executable follow each other.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxla.runtime.device import (
    BranchStep,
    CopyStep,
    Device,
    DeviceStep,
    LaunchStep,
    LoopStep,
    Place,
    Steps,
    read_objects,
)
from onnxla.runtime.executable import Executable
from onnxla.runtime.program import Array, Program
from onnxla.runtime.state import ModelState


class DeviceExecutable(Executable):
    """A program for a GPU. Without a `device` it takes the first NVIDIA GPU, when it first runs."""

    def __init__(self, program: Program, device: Device | None = None, state: ModelState | None = None) -> None:
        super().__init__(program, state)
        self._device = device
        self._session: _Session | None = None
        self._running = threading.Lock()

    def link(self) -> None:
        """Nothing: a program may be loaded, read and saved where there is no GPU; `run` needs one."""

    def _call(self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int, profile: Array | None) -> None:
        """`threads` says nothing to a GPU. Raises DeviceError where there is none that fits."""
        with self._running:
            if self._session is None:
                if self._device is None:
                    from onnxla.runtime.cuda_device import CudaDevice

                    self._device = CudaDevice()
                self._session = _Session(self.program, self._device, np.asarray(self._weights))
            self._session.run(inputs, outputs, profile)

    def release_memory(self) -> None:
        """Give all memory on the device back; the next run uploads the weights again."""
        with self._running:
            if self._session is not None:
                self._session.free()
                self._session = None


class _Session:
    """A program's code and memory on one device."""

    def __init__(self, program: Program, device: Device, weights: Array) -> None:
        self.device = device
        modules, self.steps = read_objects(program.objects)
        self.kernels: Mapping[str, Any] = {name: k for code in modules for name, k in device.load(code).items()}
        self.sizes = {
            **{("input", k): s.bytes for k, s in enumerate((*program.inputs, *program.state))},
            **{("output", k): s.bytes for k, s in enumerate((*program.outputs, *program.state))},
            ("weights", 0): weights.nbytes,
            ("arena", 0): program.arena_bytes,
        }
        self.bases = {place: device.allocate(max(size, 1)) for place, size in self.sizes.items()}
        device.upload(self.bases["weights", 0], weights)

    def free(self) -> None:
        for place, address in self.bases.items():
            self.device.free(address, max(self.sizes[place], 1))

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], profile: Array | None) -> None:
        for k, array in enumerate(inputs):
            self.device.upload(self.bases["input", k], array)
        for k, step in enumerate(self.steps):
            if profile is not None:
                self.device.synchronize()
                profile[k] = time.monotonic_ns()
            self.step(step)
        if profile is not None:
            self.device.synchronize()
            profile[len(self.steps)] = time.monotonic_ns()
        for k, array in enumerate(outputs):
            self.device.download(self.bases["output", k], array)

    def run_steps(self, steps: Steps) -> None:
        for step in steps:
            self.step(step)

    def step(self, step: DeviceStep) -> None:
        if isinstance(step, LaunchStep):
            if step.blocks:
                arguments = [self.address(p) for p in step.arguments]
                self.device.launch(self.kernels[step.kernel], step.blocks, step.threads, arguments)
        elif isinstance(step, CopyStep):
            self.device.copy(self.address(step.target), self.address(step.source), step.bytes)
        elif isinstance(step, LoopStep):
            self.run_steps(step.condition)
            while self.number(step.predicate, np.dtype(np.uint8)):
                self.run_steps(step.body)
                self.run_steps(step.condition)
        else:
            self.run_steps(step.cases[self.chosen(step)])

    def chosen(self, step: BranchStep) -> int:
        if step.is_pred:
            return 0 if self.number(step.index, np.dtype(np.uint8)) else 1
        index = self.number(step.index, np.dtype(np.int32))
        return index if 0 <= index < len(step.cases) else len(step.cases) - 1

    def number(self, place: Place, dtype: np.dtype[Any]) -> int:
        """One number that the host has to know: the device is waited for."""
        value = np.empty(1, dtype)
        self.device.download(self.address(place), value)
        return int(value[0])

    def address(self, place: Place) -> int:
        if place.space in ("input", "output"):
            return self.bases[place.space, place.number]
        return self.bases[place.space, 0] + place.number
