"""The steps of a program over places in memory: run one by one, or recorded and replayed.

Steps without a choice between them are recorded together (a CUDA graph), so that a run asks the driver once for all of
them. Inputs and outputs may lie elsewhere in every run: the launches of a recording that read or write them are revised
before it is replayed. Loops and branches ask the device for one number and go on from there; what is inside them is
recorded as well.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxla.errors import DeviceError
from onnxla.runtime.device import BranchStep, CopyStep, Device, DeviceStep, LaunchStep, LoopStep, Place, Steps
from onnxla.runtime.profiler import add_time
from onnxla.runtime.program import Step
from onnxla.runtime.tensors import Array

_LOG = logging.getLogger("onnxla")
_Action = Callable[[], None]
_OUTSIDE = ("input", "output")
"""Spaces that the caller may choose anew for every run."""


@dataclass
class _Line:
    """A recording of launches and copies, and the launches in it whose arguments may change."""

    recording: Any
    changing: list[tuple[int, LaunchStep]]
    addresses: list[list[int]] = field(default_factory=list)
    """Of the changing launches, as recorded or revised last."""


class Launches:
    """The steps of a program on a device. One of `run`, `run_timed` and `replay` is called inside `bound`."""

    def __init__(self, device: Device, kernels: Mapping[str, Any], steps: Steps, rows: Sequence[Step]) -> None:
        """`rows` are `Program.steps`, which name the nodes of the steps."""
        self._device, self._kernels, self._steps = device, kernels, steps
        self._address_of: Callable[[Place], int] = _nowhere
        self._stream = device.stream
        self._recordings: list[Any] = []
        self._recorded: _Action | None = None
        self._products = self._library_products(steps)
        """What a library does in place of a kernel, by the identity of the step."""
        self._numbers = {id(step): k for k, step in enumerate(walk(steps))}
        self._rows = rows
        self._timed: Callable[[DeviceStep, int, int], None] | None = None
        """Told begin and end of each step while a profile is made."""
        self._awaited = False
        """Whether each step is awaited before the next is asked for."""

    def _library_products(self, steps: Steps) -> dict[int, Any]:
        wanted = [s for s in walk(steps) if isinstance(s, LaunchStep) and s.library is not None]
        products: dict[int, Any] = {}
        refused: dict[str, list[str]] = {}
        for step in wanted:
            assert step.library is not None
            try:
                products[id(step)] = self._device.product(step.library)
            except DeviceError as error:
                refused.setdefault(str(error), []).append(step.kernel)
        for reason, kernels in refused.items():
            _LOG.warning("%s run in place of a library: %s", ", ".join(kernels), reason)
        return products

    @contextmanager
    def bound(self, address_of: Callable[[Place], int], stream: int) -> Iterator[None]:
        """Inside: where every place is, and the stream that the device is asked on."""
        self._address_of, self._stream = address_of, stream
        try:
            yield
        finally:
            self._address_of = _nowhere

    def run(self, awaited: bool = False) -> None:
        """Ask the device for every step, in order. With `awaited` an error of a kernel names its node."""
        self._awaited = awaited
        try:
            self._run(self._steps)
        finally:
            self._awaited = False

    def run_timed(self, profile: Array) -> None:
        """The same, with the times in `profile` (of `new_profile`), each step awaited."""
        self._await()
        profile[0] = time.monotonic_ns()
        self._timed = lambda step, begin, end: add_time(profile, self._numbers[id(step)], begin, end)
        try:
            self._run(self._steps)
        finally:
            self._timed = None
        profile[1] = time.monotonic_ns()

    def replay(self) -> None:
        """The same as `run`, from recordings, which the first call makes."""
        if self._recorded is None:
            self._recorded = self._record(self._steps)
        self._recorded()

    def release(self) -> None:
        """Forget the recordings."""
        for recording in self._recordings:
            self._device.forget(recording)
        self._recordings.clear()
        self._recorded = None

    def describe(self, step: DeviceStep) -> str:
        """The kernel of a step and the nodes of the model that it computes."""
        number = self._numbers[id(step)]
        row = self._rows[number] if number < len(self._rows) else None
        what = f"kernel {step.kernel}" if isinstance(step, LaunchStep) else type(step).__name__
        if id(step) in self._products:
            what = f"cuBLASLt in place of {what}"
        nodes = [node for node in (row.source, *row.also) if node] if row is not None else []
        return f"{what} ({'; '.join(nodes) or 'of no node'})"

    def kernels_in_words(self, most: int = 6) -> str:
        """The launches, in their order, the first ones where there are many."""
        launches = [step for step in walk(self._steps) if isinstance(step, LaunchStep) and step.blocks]
        rest = f" and {len(launches) - most} more" if len(launches) > most else ""
        return ", ".join(map(self.describe, launches[:most])) + rest

    # One by one

    def _run(self, steps: Steps) -> None:
        for step in steps:
            begin = time.monotonic_ns()
            try:
                self._step(step)
                if self._timed is not None or self._awaited:
                    self._await()
            except DeviceError as error:
                if isinstance(step, LoopStep | BranchStep):
                    raise
                raise DeviceError(f"{self.describe(step)} failed: {error}") from error
            if self._timed is not None:
                self._timed(step, begin, time.monotonic_ns())

    def _step(self, step: DeviceStep) -> None:
        if isinstance(step, LaunchStep):
            if id(step) in self._products:
                assert step.library is not None
                addresses = [self._address_of(place) for place in step.library.places]
                self._device.multiply(self._products[id(step)], addresses, self._stream)
            elif step.blocks:
                kernel = self._kernels[step.kernel]
                self._device.launch(kernel, step.blocks, step.threads, self._arguments(step), self._stream)
        elif isinstance(step, CopyStep):
            target, source = self._address_of(step.target), self._address_of(step.source)
            self._device.copy(target, source, step.bytes, self._stream)
        elif isinstance(step, LoopStep):
            self._loop(step, lambda: self._run(step.condition), lambda: self._run(step.body))
        else:
            self._run(step.cases[self._chosen(step)])

    def _arguments(self, step: LaunchStep) -> list[int]:
        return [self._address_of(place) for place in step.arguments]

    def _await(self) -> None:
        self._device.synchronize(self._device.mark(self._stream))

    def _loop(self, step: LoopStep, condition: _Action, body: _Action) -> None:
        if step.rounds is not None:
            for _ in range(step.rounds):
                body()
            return
        condition()
        while self._number(step.predicate, np.dtype(np.uint8)):
            body()
            condition()

    def _chosen(self, step: BranchStep) -> int:
        if step.is_pred:
            return 0 if self._number(step.index, np.dtype(np.uint8)) else 1
        index = self._number(step.index, np.dtype(np.int32))
        return index if 0 <= index < len(step.cases) else len(step.cases) - 1

    def _number(self, place: Place, dtype: np.dtype[Any]) -> int:
        """One number that the host has to know: the device is waited for."""
        value = np.empty(1, dtype)
        finish = self._device.download(self._address_of(place), value, self._stream)
        self._await()
        finish()
        return int(value[0])

    # Recorded

    def _record(self, steps: Steps) -> _Action:
        """What does the steps, with those in straight lines recorded."""
        actions: list[_Action] = []
        line: list[DeviceStep] = []
        for step in steps:
            if isinstance(step, LaunchStep | CopyStep) and not self._is_fixed(step):
                line.append(step)
                continue
            if line:
                actions.append(self._record_line(tuple(line)))
                line = []
            if isinstance(step, LoopStep | BranchStep):
                actions.append(self._record_choice(step))
            else:
                actions.append(self._lone(step))
        if line:
            actions.append(self._record_line(tuple(line)))

        def run() -> None:
            for action in actions:
                action()

        return run

    def _is_fixed(self, step: LaunchStep | CopyStep) -> bool:
        """Whether it is a copy or a library's product of inputs or outputs, whose places a recording cannot change."""
        if isinstance(step, CopyStep):
            places: tuple[Place, ...] = (step.source, step.target)
        else:
            places = step.library.places if step.library is not None and id(step) in self._products else ()
        return any(place.space in _OUTSIDE for place in places)

    def _lone(self, step: DeviceStep) -> _Action:
        return lambda: self._run((step,))

    def _record_line(self, steps: Steps) -> _Action:
        own = self._stream

        def work(stream: int) -> None:
            self._stream = stream
            try:
                self._run(steps)
            finally:
                self._stream = own

        launches = [s for s in steps if isinstance(s, LaunchStep) and s.blocks and id(s) not in self._products]
        changing = [(k, s) for k, s in enumerate(launches) if any(p.space in _OUTSIDE for p in s.arguments)]
        line = _Line(self._device.record(work), changing, [self._arguments(step) for _, step in changing])
        self._recordings.append(line.recording)
        return lambda: self._replay_line(line)

    def _replay_line(self, line: _Line) -> None:
        for position, (number, step) in enumerate(line.changing):
            arguments = self._arguments(step)
            if arguments != line.addresses[position]:
                kernel = self._kernels[step.kernel]
                self._device.revise(line.recording, number, kernel, step.blocks, step.threads, arguments)
                line.addresses[position] = arguments
        self._device.replay(line.recording, self._stream)

    def _record_choice(self, step: LoopStep | BranchStep) -> _Action:
        if isinstance(step, LoopStep):
            condition, body = self._record(step.condition), self._record(step.body)
            return lambda: self._loop(step, condition, body)
        cases = [self._record(case) for case in step.cases]
        return lambda: cases[self._chosen(step)]()


def walk(steps: Steps) -> Iterator[DeviceStep]:
    """Every step and those inside it, in the order of `Program.steps`."""
    for step in steps:
        yield step
        inner: tuple[Steps, ...] = ()
        if isinstance(step, LoopStep):
            inner = (step.condition, step.body)
        elif isinstance(step, BranchStep):
            inner = step.cases
        for part in inner:
            yield from walk(part)


def _nowhere(place: Place) -> int:
    raise AssertionError(f"{place} outside of bound()")
