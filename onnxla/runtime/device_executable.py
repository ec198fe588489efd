"""Run one program on a GPU: inputs up, the launch list, outputs down.

Weights are uploaded once and memory is allocated once. Inputs, and arrays given for outputs, that are on the GPU
already are used where they are. Runs of one executable follow each other; places that come a second time are recorded,
and replayed from then on.
"""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.arrays import native_array
from onnxla.runtime.device import Device, Place, read_objects
from onnxla.runtime.device_arrays import DeviceView, device_view
from onnxla.runtime.executable import Executable
from onnxla.runtime.launches import Launches
from onnxla.runtime.program import Array, Program, TensorSignature
from onnxla.runtime.state import ModelState

ALIGNMENT = 16
"""Bytes to a multiple of which the start of every array must lie: the longest access of a kernel."""
_MOST_BINDINGS = 8
"""Sets of places for which launches are kept."""


class DeviceExecutable(Executable):
    """A program for a GPU. Without a `device` it takes the first NVIDIA GPU, when it first runs."""

    def __init__(self, program: Program, device: Device | None = None, state: ModelState | None = None) -> None:
        super().__init__(program, state)
        self._device = device
        self._session: _Session | None = None
        self._running = threading.Lock()

    def link(self) -> None:
        """Nothing: a program may be loaded, read and saved where there is no GPU; `run` needs one."""

    def _call(self, inputs: Sequence[Any], outputs: Sequence[Any], threads: int, profile: Array | None) -> None:
        """`threads` says nothing to a GPU. Raises DeviceError where there is none that fits."""
        with self._running:
            if self._session is None:
                if self._device is None:
                    from onnxla.runtime.cuda_device import CudaDevice

                    self._device = CudaDevice()
                self._session = _Session(self.program, self._device, np.asarray(self._weights))
            self._session.run(inputs, outputs, profile)

    def fits(self, values: Sequence[Any]) -> bool:
        """As for a CPU, with arrays on a GPU among them."""
        if super().fits(values):
            return True
        if len(values) != len(self.program.inputs) or self.program.constants:
            return False
        try:
            views = [device_view(v, s.name) for v, s in zip(values, self.program.inputs, strict=True)]
        except InputError:
            return False
        arrays = [v if view is None else view for v, view in zip(values, views, strict=True)]
        return any(view is not None for view in views) and all(
            isinstance(a, np.ndarray | DeviceView) and not _misfits(a, s, "")
            for a, s in zip(arrays, self.program.inputs, strict=True)
        )

    def release_memory(self) -> None:
        """Give all memory on the device back; the next run uploads the weights again."""
        with self._running:
            if self._session is not None:
                self._session.free()
                self._session = None

    def _checked_inputs(self, values: Sequence[Any]) -> list[Any]:
        """As for a CPU; arrays on a GPU pass as they are. Raises InputError."""
        if len(values) != len(self.program.inputs) or all(type(value) is np.ndarray for value in values):
            return list(super()._checked_inputs(values))
        arrays: list[Any] = []
        problems: list[str] = []
        for value, signature in zip(values, self.program.inputs, strict=True):
            try:
                view = device_view(value, signature.name)
                array = native_array(value, signature.name, signature.dtype) if view is None else view
            except InputError as error:
                problems.append(str(error))
                continue
            problems += _misfits(array, signature, "the model takes")
            arrays.append(array)
        if problems:
            raise InputError("\n".join(problems))
        return arrays

    def _targets(self, out: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """As for a CPU; arrays on a GPU are written where they are, and must overlap nothing. Raises InputError."""
        if len(out) != len(self.program.outputs):
            return list(super()._targets(out, []))
        pairs = list(zip(out, self.program.outputs, strict=True))
        views = [None if given is None else device_view(given, s.name) for given, s in pairs]
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
        self.own: dict[tuple[str, int], int] = {}
        """Memory of this session, allocated when it is first needed."""
        self.launches: OrderedDict[tuple[int, ...], Launches] = OrderedDict()
        """By the addresses of inputs and outputs, those used last at the end."""
        device.upload(self.memory("weights"), weights)

    def memory(self, space: str, number: int = 0) -> int:
        place = (space, number)
        if place not in self.own:
            self.own[place] = self.device.allocate(max(self.sizes[place], 1))
        return self.own[place]

    def free(self) -> None:
        for launches in self.launches.values():
            launches.release()
        for place, address in self.own.items():
            self.device.free(address, max(self.sizes[place], 1))

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], profile: Array | None) -> None:
        """Inputs and outputs are arrays here or views of arrays on the device. All is done when it returns."""
        targets = [o if isinstance(o, np.ndarray) else device_view(o, f"output {k}") for k, o in enumerate(outputs)]
        for stream in {v.stream for v in (*inputs, *targets) if isinstance(v, DeviceView) and v.stream}:
            self.device.wait_for(stream)
        sources = [self.bring(k, value) for k, value in enumerate(inputs)]
        places = [
            t.address if isinstance(t, DeviceView) and _is_aligned(t) else self.memory("output", k)
            for k, t in enumerate(targets)
        ]
        launches, known = self.bound(tuple(sources), tuple(places))
        if profile is not None:
            launches.run_timed(profile)
        elif known:
            launches.replay()
        else:
            launches.run()
        for target, place in zip(targets, places, strict=True):
            if isinstance(target, np.ndarray):
                self.device.download(place, target)
            elif target is not None and target.address != place:
                self.device.copy(target.address, place, target.bytes)
        self.device.synchronize()

    def bring(self, number: int, value: Any) -> int:
        """Where the kernels find an input: where it is, or in memory of this session."""
        if isinstance(value, DeviceView) and _is_aligned(value):
            return value.address
        place = self.memory("input", number)
        if isinstance(value, DeviceView):
            self.device.copy(place, value.address, value.bytes)
        else:
            self.device.upload(place, value)
        return place

    def bound(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> tuple[Launches, bool]:
        """The launches for these addresses, and whether they were there before."""
        key = (*inputs, *outputs)
        known = key in self.launches
        if not known:
            if len(self.launches) == _MOST_BINDINGS:
                self.launches.popitem(last=False)[1].release()
            given = {"input": inputs, "output": outputs}

            def address(place: Place) -> int:
                if place.space in given:
                    return given[place.space][place.number]
                return self.memory(place.space) + place.number

            self.launches[key] = Launches(self.device, self.kernels, self.steps, address)
        self.launches.move_to_end(key)
        return self.launches[key], known


def _is_aligned(view: DeviceView) -> bool:
    return view.address % ALIGNMENT == 0
