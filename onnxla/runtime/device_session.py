"""A program's code and memory on one device, and its runs.

Weights are uploaded once and memory is allocated once. Inputs, and arrays for outputs, that are on the GPU already are
used where they are. The first run asks for every launch; the second records them, and those after it replay. All runs
share one arena, so each comes after the one before, on whatever stream.
"""

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxla.errors import DeviceError, InputError
from onnxla.runtime.device import Device, Place, read_objects
from onnxla.runtime.device_arrays import DeviceView, device_view
from onnxla.runtime.device_results import DeviceArray
from onnxla.runtime.launches import Launches
from onnxla.runtime.program import Program
from onnxla.runtime.tensors import Array

_LOG = logging.getLogger("onnxla")
ALIGNMENT = 16
"""Bytes to a multiple of which the start of every array must lie: the longest access of a kernel."""


class Session:
    """Everything but `run` and `wait` is its own; whoever has it lets one thread at a time in."""

    def __init__(self, program: Program, device: Device, weights: Array, *, awaited: bool = False) -> None:
        """`awaited`: whether every launch is waited for, so that an error names its node. Raises DeviceError where the
        device cannot run the code, ResourceLimitError where it has no memory for it."""
        self.device, self._awaited = device, awaited
        self.own: dict[tuple[str, int], int] = {}
        """Memory of this session, allocated when it is first needed."""
        self._kernels: list[Mapping[str, Any]] = []
        modules, steps = read_objects(program.objects)
        self._sizes = {
            **{("input", k): s.bytes for k, s in enumerate((*program.inputs, *program.state))},
            **{("output", k): s.bytes for k, s in enumerate((*program.outputs, *program.state))},
            ("weights", 0): weights.nbytes,
            ("arena", 0): program.arena_bytes,
        }
        self._used: deque[tuple[Any, Any]] = deque()
        """Marks of runs, and the arrays of others that must stay until they are passed."""
        with device.active():
            for code in modules:
                self._kernels.append(device.load(code))
            kernels = {name: k for loaded in self._kernels for name, k in loaded.items()}
            self._launches = Launches(device, kernels, steps, program.steps)
            self._memory("arena")
            device.upload(self._memory("weights"), weights, device.stream)
            self._last = (device.mark(device.stream), device.stream)
        self._runs = 0
        self._release = weakref.finalize(self, _release, device, self._launches, self._kernels, self.own, self._sizes)
        self._release.atexit = False

    def free(self) -> None:
        """Give everything back, when the runs are done."""
        self._release()

    def start(
        self, inputs: Sequence[Any], outputs: Sequence[Any], stream: int | None = None, profile: Array | None = None
    ) -> "Started":
        """Ask for a run on `stream`, by default the device's. Inputs and outputs are arrays here or views of arrays on
        the device. Raises DeviceError that names the node whose launch failed, InputError for arrays on another GPU."""
        device = self.device
        stream = device.stream if stream is None else stream
        with device.active():
            if self._last[1] != stream:
                device.wait_for(stream, self._last[0])
            targets = [
                o if isinstance(o, np.ndarray) else _view_of(o, f"output {k}", stream) for k, o in enumerate(outputs)
            ]
            views = [v for v in (*inputs, *targets) if isinstance(v, DeviceView)]
            self._require_here(views)
            for other in {v.stream for v in views} - {0, stream}:
                device.follow(stream, other)
            sources = [self._bring(k, value, stream) for k, value in enumerate(inputs)]
            places = [
                t.address if isinstance(t, DeviceView) and _is_aligned(t) else self._memory("output", k)
                for k, t in enumerate(targets)
            ]
            self._launch(sources, places, stream, profile)
            finishing = []
            for target, place in zip(targets, places, strict=True):
                if isinstance(target, np.ndarray):
                    finishing.append(device.download(place, target, stream))
                elif target.address != place:
                    device.copy(target.address, place, target.bytes, stream)
            mark = device.mark(stream)
            for output in outputs:
                if isinstance(output, DeviceArray):
                    output.written(mark, stream)
            self._last = (mark, stream)
            while self._used and device.passed(self._used[0][0]):
                self._used.popleft()
            # what is a result of ours waits for the GPU by itself when it goes
            self._used.append((mark, [v.owner for v in views if not isinstance(v.owner, DeviceArray)]))
        return Started(self, mark, finishing)

    def wait(self, mark: Any) -> None:
        """Return when all work before the mark is done. Raises DeviceError that names the kernels it may have been."""
        with self.device.active():
            try:
                self.device.synchronize(mark)
            except DeviceError as error:
                raise DeviceError(
                    f"a kernel of this run, or of earlier work on {self.device.name}, failed: {error}. The GPU says so "
                    f"afterwards, and not which; this run launched {self._launches.kernels_in_words()}. With "
                    "ONNXLA_LAUNCH_BLOCKING=1 the error names the node; start a new process for it, since after some "
                    "errors a process can do nothing more on the GPU"
                ) from error

    def passed(self, mark: Any) -> bool:
        with self.device.active():
            return self.device.passed(mark)

    def _launch(self, inputs: Sequence[int], outputs: Sequence[int], stream: int, profile: Array | None) -> None:
        given = {"input": inputs, "output": outputs}

        def address(place: Place) -> int:
            if place.space in given:
                return given[place.space][place.number]
            return self._memory(place.space) + place.number

        with self._launches.bound(address, stream):
            if profile is not None:
                self._launches.run_timed(profile)
            elif self._awaited or not self._runs:
                self._launches.run(self._awaited)
            else:
                self._launches.replay()
        self._runs += 1

    def _memory(self, space: str, number: int = 0) -> int:
        place = (space, number)
        if place not in self.own:
            self.own[place] = self.device.allocate(max(self._sizes[place], 1))
        return self.own[place]

    def _bring(self, number: int, value: Any, stream: int) -> int:
        """Where the kernels find an input: where it is, or in memory of this session."""
        if isinstance(value, DeviceView) and _is_aligned(value):
            return value.address
        place = self._memory("input", number)
        if isinstance(value, DeviceView):
            self.device.copy(place, value.address, value.bytes, stream)
        else:
            self.device.upload(place, value, stream)
        return place

    def _require_here(self, views: Sequence[DeviceView]) -> None:
        """Raise InputError for arrays in the memory of another GPU."""
        for view in views:
            holder = self.device.holder(view.address) if view.bytes else None
            if holder not in (None, self.device.number):
                raise InputError(
                    f"an array of shape {list(view.shape)} is on cuda:{holder}, and the model on {self.device.name}; "
                    "copy it there, or load the model with device= for that GPU"
                )


class Started:
    """A run that was asked for."""

    def __init__(self, session: Session, mark: Any, finishing: Sequence[Callable[[], None]]) -> None:
        self._session, self._mark, self._finishing = session, mark, deque(finishing)
        self._waiting = threading.Lock()

    def done(self) -> bool:
        """Whether `wait` would return at once. Raises DeviceError where the run failed."""
        return self._session.passed(self._mark)

    def then(self, action: Callable[[], None]) -> None:
        """What `wait` does at its end, once."""
        self._finishing.append(action)

    def wait(self) -> None:
        """Return when the results are there, on the host as well. Raises DeviceError where the run failed."""
        with self._waiting:
            self._session.wait(self._mark)
            while self._finishing:
                self._finishing.popleft()()


def _view_of(value: Any, name: str, stream: int) -> DeviceView:
    view = device_view(value, name, stream)
    assert view is not None, f"{name} is no array on a GPU"
    return view


def _is_aligned(view: DeviceView) -> bool:
    return view.address % ALIGNMENT == 0


def _release(
    device: Device,
    launches: Launches,
    kernels: list[Mapping[str, Any]],
    own: dict[tuple[str, int], int],
    sizes: Mapping[tuple[str, int], int],
) -> None:
    try:
        with device.active():
            launches.release()
            for place, address in own.items():
                device.free(address, max(sizes[place], 1))
            for loaded in kernels:
                device.unload(loaded)
            device.trim()
    except DeviceError as error:  # after a failed kernel the process can do nothing more on the GPU
        _LOG.warning("memory of %s is not given back: %s", device.name, error)
    own.clear()
    kernels.clear()
