"""Run one program: check the arrays, call the native entry, hand out fresh results.

A call takes a frame (pointer arrays and an arena) from a free list, so any number of threads may run one executable at
once. The native call goes through ctypes, which lets other Python threads run meanwhile.
"""

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.errors import ArtifactError, InputError, ResourceLimitError
from onnxla.runtime.arrays import native_array
from onnxla.runtime.buffers import address_of, addresses_of, aligned_bytes, as_aligned
from onnxla.runtime.host_inputs import HostInputs
from onnxla.runtime.loader import NativeLibrary
from onnxla.runtime.machine import check_machine
from onnxla.runtime.program import Program
from onnxla.runtime.state import ModelState
from onnxla.runtime.targets import into_targets, require_targets
from onnxla.runtime.tensors import Array
from onnxla.runtime.thread_pool import PARALLEL_FOR, thread_pool
from onnxla.runtime.thread_stack import has_large_stack

_ENTRY = "onnxla_run"
_Entry = ctypes.CFUNCTYPE(None)
"""The native entry. Its arguments are pointers that are made once for each frame, so ctypes need not convert them."""
_Word = ctypes.c_size_t


class _Frame:
    """What one run needs for itself: an arena, and words for what the native code is told.

    These are the addresses of the inputs and of the outputs, the number of threads, and the address of the profile.
    """

    def __init__(self, inputs: int, outputs: int, weights_address: int, arena_bytes: int) -> None:
        self.words = (_Word * (inputs + outputs + 2))()
        self._arena = aligned_bytes(arena_bytes)
        places = [ctypes.addressof(self.words) + k * ctypes.sizeof(_Word) for k in (0, inputs, inputs + outputs)]
        self.addresses = (*places[:2], weights_address, address_of(self._arena), places[2])
        """The arguments of the native entry."""
        self.arguments = [ctypes.byref(ctypes.c_char.from_address(address)) for address in self.addresses]
        """The same as pointers."""


class Executable:
    """A program and its code in this process, linked at the first run (or `link()`)."""

    def __init__(
        self, program: Program, state: ModelState | None = None, input_names: Sequence[str] | None = None
    ) -> None:
        """`state` holds the variables that the program changes, `input_names` are the model's inputs (None: those of
        the program). Raises ArtifactError where `state` holds other variables."""
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
        self._taken = len(program.inputs) + len(program.state)
        self._given = len(program.outputs) + len(program.state)
        names = [s.name for s in program.inputs] if input_names is None else input_names
        self._host = HostInputs(program, names) if program.constants or program.vocabularies else None
        self._input_types = [(s.dtype, s.shape) for s in program.inputs]
        self._output_shapes = [s.shape for s in program.outputs]
        self._output_dtypes = [s.dtype for s in program.outputs]
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
        """Run on `values`, one for each input of the program, and return one array for each output.

        `out` gives arrays to write (None: a fresh one). `profile` (of `new_profile`) receives times; such a run
        leaves the state as it was. Raises InputError that lists everything wrong with
        `values` and `out`; then nothing has run. Raises ResourceLimitError without memory for the outputs.
        """
        if self._host is not None and len(values) == len(self.program.inputs):
            values = self._host.with_places(values)
        return self._run(self._checked_inputs(values), threads, out, profile)

    def accepted(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """What the native code takes of the model's inputs, where it takes them without a copy; None where it takes a
        closer look."""
        if self._host is not None:
            native = self._host.native(values)
            if native is None:
                return None
            values = native
        if len(values) != len(self._input_types):
            return None
        for value, (dtype, shape) in zip(values, self._input_types, strict=True):
            if type(value) is not np.ndarray or value.dtype != dtype or value.shape != shape:
                return None
            flags = value.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
        return values

    def run_accepted(self, values: Sequence[Any], threads: int, out: Sequence[Any] | None = None) -> list[Array]:
        """As `run`, on what `accepted` gave."""
        return self._run(values, threads, out, None)

    def _run(
        self, inputs: Sequence[Array], threads: int, out: Sequence[Any] | None, profile: Array | None
    ) -> list[Array]:
        if self._entry is None:
            self.link()
        try:
            outputs = (
                [*map(np.empty, self._output_shapes, self._output_dtypes)]
                if out is None
                else self._targets(out, inputs)
            )
        except MemoryError as error:
            raise ResourceLimitError(f"no memory for the outputs: {error}") from error
        if self._state is None:
            self._call([*inputs, *outputs], threads, profile)
        else:
            self._state.step(
                self._state_names,
                lambda before, after: self._call([*inputs, *before, *outputs, *after], threads, profile),
                keep=profile is not None,
            )
        return outputs if out is None else into_targets(outputs, out)

    def _call(self, arrays: Sequence[Array], threads: int, profile: Array | None) -> None:
        """Run the native code on arrays that fit: the inputs, the state, the outputs, the new state."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self._taken, self._given, address_of(self._weights), self.program.arena_bytes)
        frame.words[:] = [*addresses_of(arrays), threads, 0 if profile is None else address_of(profile)]
        if has_large_stack():
            self._entry(*frame.arguments)
        else:
            thread_pool(self.program.thread_pool).call(self._library[_ENTRY], frame.addresses)
        self._frames.append(frame)

    def release_memory(self) -> None:
        """Give the arenas of runs that have ended back to the system."""
        self._frames.clear()

    def _checked_inputs(self, values: Sequence[Any]) -> Sequence[Array]:
        """`values` as arrays that the native code can take. Raises InputError that lists all that do not fit."""
        signatures = self.program.inputs
        if len(values) != len(signatures):
            raise InputError(f"{len(values)} arrays for {len(signatures)} inputs: {', '.join(map(str, signatures))}")
        arrays: list[Array] = []
        problems: list[str] = []
        for value, s in zip(values, signatures, strict=True):
            try:
                array = native_array(value, s.name, s.dtype)
            except InputError as error:
                problems.append(str(error))
                continue
            if array.shape != s.shape:
                problems.append(f"{s.name}: shape {list(array.shape)}, the model takes {list(s.shape)}")
            arrays.append(array)
        if problems:
            raise InputError("\n".join(problems))
        return arrays

    def _targets(self, out: Sequence[Array | None], inputs: Sequence[Array]) -> list[Array]:
        """Arrays the native code may write: those of `out` where dense and overlapping nothing, else fresh ones."""
        signatures = self.program.outputs
        if len(out) != len(signatures):
            raise InputError(f"{len(out)} arrays in out for {len(signatures)} outputs")
        require_targets(out, ((s.name, s.dtype, s.shape) for s in signatures))
        taken = list(inputs)
        targets = []
        for given, signature in zip(out, signatures, strict=True):
            direct = given is not None and given.flags.carray and not any(np.may_share_memory(given, t) for t in taken)
            target = given if given is not None and direct else np.empty(signature.shape, signature.dtype)
            taken.append(target)
            targets.append(target)
        return targets
