"""Run one program on a GPU: inputs up, the launch list, outputs down.

`device_session.py` has the code and the memory on the GPU, from the first run on. Any number of threads may call; their
runs follow one another on the GPU, while the host prepares the next.
"""

import functools
import itertools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.config import RuntimeSettings
from onnxla.errors import InputError
from onnxla.runtime.arrays import native_array
from onnxla.runtime.device import Device
from onnxla.runtime.device_arrays import DeviceView, device_view, is_on_gpu, looks_like
from onnxla.runtime.device_results import DeviceArray
from onnxla.runtime.device_session import Session, Started
from onnxla.runtime.executable import Executable
from onnxla.runtime.program import Program
from onnxla.runtime.state import ModelState
from onnxla.runtime.streams import LEGACY_STREAM
from onnxla.runtime.tensors import Array, TensorSignature


class DeviceExecutable(Executable):
    """A program for a GPU. `device` is one, or its number among the machine's NVIDIA GPUs: then it is looked for when
    the program first runs."""

    def __init__(
        self,
        program: Program,
        device: Device | int = 0,
        state: ModelState | None = None,
        input_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(program, state, input_names)
        self._device = device
        self._session: Session | None = None
        self._asking = threading.Lock()

    def link(self) -> None:
        """Nothing: a program may be loaded, read and saved where there is no GPU; `run` needs one."""

    def start(self, values: Sequence[Any], out: Sequence[Any] | None, stream: int | None) -> tuple[Started, list[Any]]:
        """Ask for a run, and return it with its outputs: those given in `out`, and fresh arrays on the GPU.

        Raises InputError that lists everything wrong with `values` and `out`, DeviceError where there is no GPU that
        fits. Not for programs with state.
        """
        with self._asking:
            session = self._opened()
            if stream is not None:
                with session.device.active():
                    session.device.require_stream(stream)
            exchange = session.device.stream if stream is None else stream
            inputs = self._checked_inputs(values, exchange)
            given: list[Any] = [None] * len(self.program.outputs) if out is None else list(out)
            targets = self._targets(given, inputs, exchange)
            with session.device.active():
                for k, signature in enumerate(self.program.outputs):
                    if given[k] is None:
                        given[k] = targets[k] = DeviceArray(session.device, signature)
            started = session.start(inputs, targets, stream)
        for array, written in zip(given, targets, strict=True):
            if array is not written:
                started.then(functools.partial(np.copyto, array, written))
        return started, given

    def _call(self, arrays: Sequence[Any], threads: int, profile: Array | None) -> None:
        """`threads` says nothing to a GPU. Raises DeviceError where there is none that fits."""
        inputs, outputs = arrays[: self._taken], arrays[self._taken :]
        with self._asking:
            started = self._opened().start(inputs, outputs, None, profile)
        started.wait()

    def _opened(self) -> Session:
        if self._session is None:
            if isinstance(self._device, int):
                from onnxla.runtime import cuda_device

                self._device = cuda_device.CudaDevice(self._device)
            awaited = RuntimeSettings.from_environment().launch_blocking
            self._session = Session(self.program, self._device, np.asarray(self._weights), awaited=awaited)
        return self._session

    def accepted(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """As for a CPU, with arrays on a GPU among them."""
        accepted = super().accepted(values)
        if accepted is not None or self._host is not None:
            return accepted
        if len(values) != len(self.program.inputs) or not any(map(is_on_gpu, values)):
            return None
        are_right = all(
            looks_like(value, signature)
            or (isinstance(value, np.ndarray) and not _misfits(value, signature, "the model takes"))
            for value, signature in zip(values, self.program.inputs, strict=True)
        )
        return values if are_right else None

    def run_accepted(self, values: Sequence[Any], threads: int, out: Sequence[Any] | None = None) -> list[Any]:
        """Arrays on a GPU become views of it."""
        return self._run(self._checked_inputs(values), threads, out, None)

    def release_memory(self) -> None:
        """Give all memory on the device back; the next run uploads the weights again."""
        with self._asking:
            if self._session is not None:
                self._session.free()
                self._session = None

    def _stream(self) -> int:
        """Where runs are asked for unless the caller has a stream."""
        with self._asking:
            return self._opened().device.stream

    def _checked_inputs(self, values: Sequence[Any], stream: int | None = None) -> Sequence[Any]:
        """As for a CPU; arrays on a GPU become views, and are there for work on `stream`. Raises InputError."""
        if len(values) != len(self.program.inputs) or all(type(value) is np.ndarray for value in values):
            return super()._checked_inputs(values)
        if stream is None:
            stream = self._stream() if any(map(is_on_gpu, values)) else LEGACY_STREAM
        arrays: list[Any] = []
        problems: list[str] = []
        for value, signature in zip(values, self.program.inputs, strict=True):
            try:
                view = device_view(value, signature.name, stream)
                array = native_array(value, signature.name, signature.dtype) if view is None else view
            except InputError as error:
                problems.append(str(error))
                continue
            problems += _misfits(array, signature, "the model takes")
            arrays.append(array)
        if problems:
            raise InputError("\n".join(problems))
        return arrays

    def _targets(self, out: Sequence[Any], inputs: Sequence[Any], stream: int | None = None) -> list[Any]:
        """As for a CPU; arrays on a GPU are written where they are, and must overlap nothing. Raises InputError."""
        if len(out) != len(self.program.outputs):
            return list(super()._targets(out, []))
        pairs = list(zip(out, self.program.outputs, strict=True))
        if stream is None:
            stream = self._stream() if any(map(is_on_gpu, out)) else LEGACY_STREAM
        views = [None if given is None else device_view(given, s.name, stream) for given, s in pairs]
        problems: list[str] = []
        for view, (_, signature) in zip(views, pairs, strict=True):
            if view is not None:
                problems += [
                    text.replace(": ", ": out has ", 1) for text in _misfits(view, signature, "the model gives")
                ]
                problems += [f"{signature.name}: out is read-only"] if view.read_only else []
        written = [view for view in views if view is not None]
        taken = [value for value in inputs if isinstance(value, DeviceView)]
        if any(a.overlaps(b) for a, b in itertools.combinations(written, 2)) or any(
            a.overlaps(b) for a in written for b in taken
        ):
            problems.append("arrays on a GPU that out= gives overlap each other, or inputs")
        if problems:
            raise InputError("\n".join(problems))
        hosts = [None if view is not None else given for view, given in zip(views, out, strict=True)]
        targets: list[Any] = list(super()._targets(hosts, [i for i in inputs if isinstance(i, np.ndarray)]))
        return [target if view is None else given for target, view, given in zip(targets, views, out, strict=True)]


def _misfits(array: Array | DeviceView, signature: TensorSignature, who: str) -> list[str]:
    """What keeps an array from being the one that the signature wants."""
    problems = []
    if array.dtype != signature.dtype:
        problems.append(f"{signature.name}: dtype {array.dtype}, {who} {signature.dtype}")
    if tuple(array.shape) != tuple(signature.shape):
        problems.append(f"{signature.name}: shape {list(array.shape)}, {who} {list(signature.shape)}")
    return problems
