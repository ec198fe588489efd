"""The code that a model has for sets of input shapes (and values): choosing it for a run, making more, forgetting some.

The list of executables is replaced and never changed, so runs read it without a lock. Whoever compiles holds one: two
threads that meet a new size at once get one program, and threads whose sizes have code do not wait.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.executable import Executable
from onnxla.runtime.program import GPU_TRIPLE, Program
from onnxla.runtime.state import ModelState
from onnxla.runtime.tensors import Array

Specialise: TypeAlias = Callable[[Mapping[str, Array]], Program]
"""Compiles the model for the shapes of the arrays, and for the values of those that decide shapes."""
_LOG = logging.getLogger("onnxla")


@dataclass(frozen=True)
class Choice:
    """The executable for a run, and the rows to keep of its results where its inputs must be padded."""

    executable: Executable
    rows: int | None = None


class Specialisations:
    """The executables of one model, those used last first, at most `bound` of them."""

    def __init__(
        self,
        programs: Sequence[Program],
        input_names: Sequence[str],
        state: ModelState,
        specialise: Specialise | None,
        bound: int,
        gpu: int = 0,
    ) -> None:
        """`input_names` are the model's inputs, `gpu` is the number of the GPU that runs programs for one."""
        self._input_names = input_names
        self._gpu = gpu
        self.may_compile = specialise is not None
        self._state = state
        self._specialise = specialise
        self._bound = max(bound, len(programs))
        self._compiling = threading.Lock()
        self._has_dropped = False
        self.executables = [self._executable(program) for program in programs]

    @property
    def programs(self) -> tuple[Program, ...]:
        return tuple(e.program for e in self.executables)

    def quickly(self, values: Sequence[Any]) -> tuple[Executable, Sequence[Any]] | None:
        """The executable that takes the model's inputs as they are, and what it takes of them; None where it takes a
        closer look."""
        for executable in self.executables:
            accepted = executable.accepted(values)
            if accepted is not None:
                if executable is not self.executables[0]:
                    self._put_first(executable)
                return executable, accepted
        return None

    def choose(self, arrays: Mapping[str, Array]) -> Choice:
        """The executable for the shapes (and values) of the inputs: one made for them, one that they can be padded for,
        or one that is made now. Raises InputError where there is none and none can be made."""
        found = self._find(arrays)
        if found is not None:
            return Choice(found)
        return self._padded(arrays) or Choice(self._compile(arrays))

    def _find(self, arrays: Mapping[str, Array]) -> Executable | None:
        executables = self.executables
        for position, executable in enumerate(executables):
            if _fits(executable.program, arrays):
                if position:
                    self._put_first(executable)
                return executable
        return None

    def _padded(self, arrays: Mapping[str, Array]) -> Choice | None:
        """The executable made for the fewest rows to which the inputs can be padded."""
        shapes = {name: array.shape for name, array in arrays.items()}
        found: Choice | None = None
        least = 0
        for executable in self.executables:
            program = executable.program
            if program.padding is None or not _has_values(program, arrays):
                continue
            rows = program.padding.rows_in(shapes, {t.name: t.shape for t in program.inputs})
            if rows is not None and (found is None or program.padding.rows < least):
                found, least = Choice(executable, rows), program.padding.rows
        return found

    def _put_first(self, executable: Executable) -> None:
        kept = [executable, *(e for e in self.executables if e is not executable)]
        for dropped in kept[self._bound :]:
            if not self._has_dropped:
                self._has_dropped = True
                _LOG.warning(
                    "the code for %s is dropped: a model keeps that of %d sets of shapes, and compiles again for "
                    "others; ONNXLA_SPECIALISATIONS keeps more",
                    _plain(describe(dropped.program)),
                    self._bound,
                )
        self.executables = kept[: self._bound]

    def _compile(self, arrays: Mapping[str, Array]) -> Executable:
        if self._specialise is None:
            raise InputError(self._no_such(arrays))
        with self._compiling:
            found = self._find(arrays)
            if found is None:
                start = time.perf_counter()
                program = self._specialise(arrays)
                found = self._executable(program)
                seconds = time.perf_counter() - start
                _LOG.info("compiled for %s in %.2f seconds", _plain(describe(program)), seconds)
                self._put_first(found)
            return found

    def _executable(self, program: Program) -> Executable:
        """What runs a program, on the GPU where it is for one."""
        if program.triple == GPU_TRIPLE:
            from onnxla.runtime.device_executable import DeviceExecutable

            return DeviceExecutable(program, self._gpu, self._state, self._input_names)
        return Executable(program, self._state, self._input_names)

    def _no_such(self, arrays: Mapping[str, Array]) -> str:
        given = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
        known = [describe(program) for program in sorted(self.programs, key=shape_key)]
        return "\n".join([f"no code for {given}", *(f"  there is code for {text}" for text in known)])


def describe(program: Program) -> str:
    """What a program was made for."""
    padding = program.padding
    parts = [f"{t.name} {list(t.shape)}" for t in program.inputs]
    parts += [f"{name} = {np.array2string(value, threshold=8)}" for name, value in program.constants.items()]
    if padding is not None and padding.least < padding.rows:
        parts.append(f"padded from {padding.name}={padding.least} to {padding.rows - 1}")
    return ", ".join(parts) or "no inputs"


def shape_key(program: Program) -> tuple[Any, ...]:
    """What programs of one model are ordered by."""
    values = tuple((name, value.shape, value.tobytes()) for name, value in sorted(program.constants.items()))
    return (tuple(t.shape for t in program.inputs), values)


def _fits(program: Program, arrays: Mapping[str, Array]) -> bool:
    """Whether the program was made for the shapes of these inputs, and for these values where they count."""
    return all(arrays[t.name].shape == t.shape for t in program.inputs) and _has_values(program, arrays)


def _has_values(program: Program, arrays: Mapping[str, Array]) -> bool:
    return all(_same(arrays[name], value) for name, value in program.constants.items() if name in arrays)


def _same(a: Array, b: Array) -> bool:
    """Equal bit for bit, so that NaN equals itself and 0.0 is not -0.0. Strings compare by value."""
    if a.shape != b.shape:
        return False
    if b.dtype.kind in "OSU":
        return bool(np.array_equal(a.astype(str), b.astype(str)))
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _plain(text: str) -> str:
    """Names come from models, and logs are read in terminals."""
    return text.encode("unicode_escape").decode()
