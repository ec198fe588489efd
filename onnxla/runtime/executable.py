"""Run one program: check the arrays, call the native entry, hand out fresh results.

A call takes a frame (pointer arrays and an arena) from a free list, so any number of threads may run one executable at
once. The native call goes through ctypes, which lets other Python threads run meanwhile.
"""

import ctypes
import itertools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.errors import ArtifactError, InputError, ResourceLimitError
from onnxla.runtime.arrays import native_array
from onnxla.runtime.buffers import aligned_bytes, as_aligned
from onnxla.runtime.loader import NativeLibrary
from onnxla.runtime.machine import check_machine
from onnxla.runtime.program import Array, Program, TensorSignature
from onnxla.runtime.state import ModelState
from onnxla.runtime.thread_pool import PARALLEL_FOR, thread_pool
from onnxla.runtime.thread_stack import has_large_stack

_ENTRY = "onnxla_run"
_Entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)


class _Context(ctypes.Structure):
    """The last argument of the native entry."""

    _fields_ = (("threads", ctypes.c_int64), ("profile", ctypes.c_void_p))


class _Frame:
    """What one run needs for itself."""

    def __init__(self, inputs: int, outputs: int, arena_bytes: int) -> None:
        self.inputs = (ctypes.c_void_p * max(inputs, 1))()
        self.outputs = (ctypes.c_void_p * max(outputs, 1))()
        self.context = _Context()
        self.context_address = ctypes.addressof(self.context)
        self.arena = aligned_bytes(arena_bytes)
        self.arena_address = self.arena.ctypes.data


class Executable:
    """A program and its code in this process, linked at the first run (or `link()`)."""

    def __init__(self, program: Program, state: ModelState | None = None) -> None:
        """`state` holds the variables that the program changes. Raises ArtifactError where it holds others."""
        if program.arena_bytes < 0:
            raise ArtifactError(f"impossible arena of {program.arena_bytes} bytes")
        if program.state and (state is None or not set(program.state) <= set(state.signatures())):
            raise ArtifactError(f"the program's state does not fit the model's: {', '.join(map(str, program.state))}")
        self.program = program
        self._state = state if program.state else None
        self._state_names = [s.name for s in program.state]
        self._entry: Any = None
        self._linking = threading.Lock()
        self._weights = as_aligned(program.weights)
        self._weights_address = self._weights.ctypes.data
        self._input_checks = [(s, s.dtype, s.shape) for s in program.inputs]
        self._output_makers = [(s.shape, s.dtype) for s in program.outputs]
        self._frames: list[_Frame] = []

    def link(self) -> None:
        """Raises ArtifactError where the code is for another machine or cannot be linked."""
        with self._linking:
            if self._entry is not None:
                return
            program = self.program
            check_machine(program.triple, program.features)
            imports = {PARALLEL_FOR: thread_pool(program.thread_pool).parallel_for_address}
            self._library = NativeLibrary(program.objects, imports)
            self._entry = _Entry(self._library[_ENTRY])

    def run(
        self,
        values: Sequence[Any],
        threads: int,
        out: Sequence[Any] | None = None,
        profile: Array | None = None,
    ) -> list[Array]:
        """Run on `values`, one for each input, and return one array for each output.

        `out` gives arrays to write (None: a fresh one). `profile` (of `new_profile`) receives times; such a run
        leaves the state as it was. Raises InputError that lists everything wrong with
        `values` and `out`; then nothing has run. Raises ResourceLimitError without memory for the outputs.
        """
        if self._entry is None:
            self.link()
        inputs = self._checked_inputs(values)
        try:
            outputs = (
                [np.empty(shape, dtype) for shape, dtype in self._output_makers]
                if out is None
                else self._targets(out, inputs)
            )
        except MemoryError as error:
            raise ResourceLimitError(f"no memory for the outputs: {error}") from error
        if self._state is None:
            self._call(inputs, outputs, threads, profile)
        else:
            self._state.step(
                self._state_names,
                lambda before, after: self._call([*inputs, *before], [*outputs, *after], threads, profile),
                keep=profile is not None,
            )
        if out is None:
            return outputs
        for given, written in zip(out, outputs, strict=True):
            if given is not None and given is not written:
                given[...] = written
        return [written if given is None else given for given, written in zip(out, outputs, strict=True)]

    def _call(self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int, profile: Array | None) -> None:
        """Run the native code on arrays that fit: the inputs and the state, the outputs and the new state."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(len(inputs), len(outputs), self.program.arena_bytes)
        for i, array in enumerate(inputs):
            frame.inputs[i] = array.ctypes.data
        for i, array in enumerate(outputs):
            frame.outputs[i] = array.ctypes.data
        frame.context.threads = threads
        frame.context.profile = None if profile is None else profile.ctypes.data
        if has_large_stack():
            self._entry(frame.inputs, frame.outputs, self._weights_address, frame.arena_address, frame.context_address)
        else:
            places = (ctypes.addressof(frame.inputs), ctypes.addressof(frame.outputs))
            arguments = (*places, self._weights_address, frame.arena_address, frame.context_address)
            thread_pool(self.program.thread_pool).call(self._library[_ENTRY], arguments)
        self._frames.append(frame)

    def fits(self, values: Sequence[Any]) -> bool:
        """Whether `values` are numpy arrays of exactly the types that this program takes, all inputs of the model."""
        if len(values) != len(self._input_checks) or self.program.constants:
            return False
        for value, (_, dtype, shape) in zip(values, self._input_checks, strict=True):
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return False
        return True

    def release_memory(self) -> None:
        """Give the arenas of runs that have ended back to the system."""
        self._frames.clear()

    def _checked_inputs(self, values: Sequence[Any]) -> list[Array]:
        checks = self._input_checks
        if len(values) != len(checks):
            raise InputError(f"{len(values)} arrays for {len(checks)} inputs: {', '.join(str(c[0]) for c in checks)}")
        arrays: list[Array] = []
        problems: list[str] = []
        for value, (signature, dtype, shape) in zip(values, checks, strict=True):
            if type(value) is np.ndarray and value.dtype == dtype and value.shape == shape:
                flags = value.flags
                arrays.append(value if flags.c_contiguous and flags.aligned else np.array(value, dtype, order="C"))
                continue
            try:
                array = native_array(value, signature.name, dtype)
            except InputError as error:
                problems.append(str(error))
                continue
            if array.shape != shape:
                problems.append(f"{signature.name}: shape {list(array.shape)}, the model takes {list(shape)}")
            arrays.append(array)
        if problems:
            raise InputError("\n".join(problems))
        return arrays

    def _targets(self, out: Sequence[Array | None], inputs: Sequence[Array]) -> list[Array]:
        """Arrays the native code may write: those of `out` where dense and overlapping nothing, else fresh ones."""
        signatures = self.program.outputs
        if len(out) != len(signatures):
            raise InputError(f"{len(out)} arrays in out for {len(signatures)} outputs")
        pairs = list(zip(out, signatures, strict=True))
        problems = [text for given, signature in pairs if given is not None for text in _unfit_target(given, signature)]
        if problems:
            raise InputError("\n".join(problems))
        dense = [(given, s.name) for given, s in pairs if given is not None and given.flags.c_contiguous]
        for (a, name), (b, other) in itertools.combinations(dense, 2):
            if np.may_share_memory(a, b):
                raise InputError(f"{name}, {other}: their out arrays overlap, so one result would be lost")
        taken = list(inputs)
        targets = []
        for given, signature in pairs:
            direct = given is not None and given.flags.carray and not any(np.may_share_memory(given, t) for t in taken)
            target = given if given is not None and direct else np.empty(signature.shape, signature.dtype)
            taken.append(target)
            targets.append(target)
        return targets


def _unfit_target(given: Any, signature: TensorSignature) -> list[str]:
    if not isinstance(given, np.ndarray):
        return [f"{signature.name}: out must be an array, not {type(given).__name__}"]
    problems = []
    if given.dtype != signature.dtype:
        problems.append(f"{signature.name}: out has dtype {given.dtype}, the model gives {signature.dtype}")
    if given.shape != signature.shape:
        problems.append(f"{signature.name}: out has shape {list(given.shape)}, the model gives {list(signature.shape)}")
    if not given.flags.writeable:
        problems.append(f"{signature.name}: out is read-only")
    return problems
