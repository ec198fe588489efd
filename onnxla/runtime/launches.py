"""The steps of a program over fixed addresses: run one by one, or recorded and replayed.

Steps without a choice between them are recorded together (a CUDA graph), so that a run asks the driver once for all of
them. Loops and branches ask the device for one number and go on from there; what is inside them is recorded as well.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from onnxla.runtime.device import BranchStep, CopyStep, Device, DeviceStep, LaunchStep, LoopStep, Place, Steps
from onnxla.runtime.profiler import add_time
from onnxla.runtime.program import Array

_Action = Callable[[], None]


class Launches:
    """`address_of` says where each place of the steps is, as long as this lives."""

    def __init__(
        self, device: Device, kernels: Mapping[str, Any], steps: Steps, address_of: Callable[[Place], int]
    ) -> None:
        self._device, self._kernels, self._steps, self._address_of = device, kernels, steps, address_of
        self._recordings: list[Any] = []
        self._recorded: _Action | None = None
        self._timed: Callable[[DeviceStep, int, int], None] | None = None
        """Told begin and end of each step while a profile is made."""

    def run(self) -> None:
        """Ask the device for every step, in order."""
        self._run(self._steps)

    def run_timed(self, profile: Array) -> None:
        """The same, with the times in `profile` (of `new_profile`), each step awaited."""
        numbers = {id(step): k for k, step in enumerate(_walk(self._steps))}
        self._device.synchronize()
        profile[0] = time.monotonic_ns()
        self._timed = lambda step, begin, end: add_time(profile, numbers[id(step)], begin, end)
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

    # One by one

    def _run(self, steps: Steps) -> None:
        for step in steps:
            if self._timed is None:
                self._step(step)
                continue
            begin = time.monotonic_ns()
            self._step(step)
            self._device.synchronize()
            self._timed(step, begin, time.monotonic_ns())

    def _step(self, step: DeviceStep) -> None:
        if isinstance(step, LaunchStep):
            if step.blocks:
                arguments = [self._address_of(p) for p in step.arguments]
                self._device.launch(self._kernels[step.kernel], step.blocks, step.threads, arguments)
        elif isinstance(step, CopyStep):
            self._device.copy(self._address_of(step.target), self._address_of(step.source), step.bytes)
        elif isinstance(step, LoopStep):
            self._loop(step, lambda: self._run(step.condition), lambda: self._run(step.body))
        else:
            self._run(step.cases[self._chosen(step)])

    def _loop(self, step: LoopStep, condition: _Action, body: _Action) -> None:
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
        self._device.download(self._address_of(place), value)
        return int(value[0])

    # Recorded

    def _record(self, steps: Steps) -> _Action:
        """What does the steps, with those in straight lines recorded."""
        actions: list[_Action] = []
        line: list[DeviceStep] = []
        for step in steps:
            if isinstance(step, LaunchStep | CopyStep):
                line.append(step)
                continue
            if line:
                actions.append(self._record_line(tuple(line)))
                line = []
            actions.append(self._record_choice(step))
        if line:
            actions.append(self._record_line(tuple(line)))

        def run() -> None:
            for action in actions:
                action()

        return run

    def _record_line(self, steps: Steps) -> _Action:
        recording = self._device.record(lambda: self._run(steps))
        self._recordings.append(recording)
        return lambda: self._device.replay(recording)

    def _record_choice(self, step: LoopStep | BranchStep) -> _Action:
        if isinstance(step, LoopStep):
            condition, body = self._record(step.condition), self._record(step.body)
            return lambda: self._loop(step, condition, body)
        cases = [self._record(case) for case in step.cases]
        return lambda: cases[self._chosen(step)]()


def _walk(steps: Steps) -> Iterator[DeviceStep]:
    """Every step and those inside it, in the order of `Program.steps`."""
    for step in steps:
        yield step
        inner: tuple[Steps, ...] = ()
        if isinstance(step, LoopStep):
            inner = (step.condition, step.body)
        elif isinstance(step, BranchStep):
            inner = step.cases
        for part in inner:
            yield from _walk(part)
