"""`CompiledModel`: what `compile()` and `load_compiled()` return, used as onnxruntime's InferenceSession is.

It holds one executable for each specialisation: a set of input shapes, and of values where the code depends on them.
A model whose shapes were left open compiles a specialisation when `run` first meets its shapes, and keeps those used
last, within a bound.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from onnxla.config import RuntimeSettings
from onnxla.errors import ArtifactError, InputError
from onnxla.given import shapes_of, sizes_of, whole_number
from onnxla.runtime.arguments import Arguments, Out
from onnxla.runtime.artifact import Artifact
from onnxla.runtime.artifact_writing import write_artifact
from onnxla.runtime.gpu_choice import chosen_gpu
from onnxla.runtime.pending import PendingRun
from onnxla.runtime.program import GPU_TRIPLE, Program
from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.runtime.specialisations import Choice, Specialisations, Specialise, shape_key
from onnxla.runtime.state import ModelState
from onnxla.runtime.streams import stream_number
from onnxla.runtime.targets import into_targets, require_targets
from onnxla.runtime.tensors import Array
from onnxla.runtime.thread_pool import default_threads

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from onnxla.runtime.device_executable import DeviceExecutable
    from onnxla.runtime.profiler import Memory, Profile
    from onnxla.runtime.report import CompileReport

_Run: TypeAlias = Callable[[Sequence[Any], int, Sequence[Any] | None], list[Any]]


class CompiledModel:
    """A compiled model. Any number of threads may call it at once; results do not depend on their number."""

    def __init__(
        self,
        signature: ModelSignature,
        programs: Sequence[Program],
        *,
        specialise: Specialise | None = None,
        constants: Mapping[str, Array] | None = None,
        num_threads: int | None = None,
        about: Mapping[str, Any] | None = None,
        reports: "Sequence[CompileReport]" = (),
        state: Mapping[str, Array] | None = None,
        device: str | None = None,
    ) -> None:
        """`device` is where it runs: `cpu`, `cuda`, `cuda:1`. None: where its code is for; with code for both, the
        first GPU if there is one that fits, else the CPU. Raises DeviceError where there is no code for `device`."""
        if num_threads is not None:
            num_threads = whole_number(num_threads, "num_threads", 1)
        self._signature = signature
        self._arguments = Arguments(signature, constants or {})
        self.state = ModelState(state or {})
        """The variables that running changes, by name: readable, settable, and part of what is saved."""
        bound = RuntimeSettings.from_environment().specialisations
        self._gpu = chosen_gpu(programs, device)
        """The number of the GPU that it runs on; None for the CPU."""
        on_gpu = self._gpu is not None
        used = [p for p in programs if (p.triple == GPU_TRIPLE) == on_gpu]
        self._elsewhere = [p for p in programs if (p.triple == GPU_TRIPLE) != on_gpu]
        """Code for the other kind of device, which is saved with the rest."""
        self._specialisations = Specialisations(
            used, self._arguments.input_names, self.state, specialise, bound, self._gpu or 0
        )
        self._starting = threading.Lock()
        self._workers: ThreadPoolExecutor | None = None
        self._about = dict(about or {})
        self.reports = tuple(reports)
        """What compiling did, for each program in the order of their making; empty for a model that was loaded."""
        self.num_threads = num_threads or default_threads()
        """Most threads that one run uses."""

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, side)) for side in (self._signature.inputs, self._signature.outputs))
        return f"<CompiledModel {inputs} -> {outputs}>"

    # Running

    @property
    def device(self) -> str:
        """Where it runs: `cpu`, `cuda:0`, ..."""
        return "cpu" if self._gpu is None else f"cuda:{self._gpu}"

    def get_inputs(self) -> list[ModelTensor]:
        """The inputs in the model's order, with `.name`, `.shape` and `.type`."""
        return list(self._signature.inputs)

    def get_outputs(self) -> list[ModelTensor]:
        """The outputs in the model's order, with `.name`, `.shape` and `.type`."""
        return list(self._signature.outputs)

    def run(self, output_names: Iterable[str] | None, feeds: Mapping[str, Any], *, out: Out = None) -> list[Any]:
        """Run on arrays by input name and return the outputs named (all for None), as fresh arrays.

        As in onnxruntime a sequence is a list, an empty optional None, a map a dict, and strings are arrays of `str`.

        `out` gives arrays that receive results, by name or in the order of the results. Raises InputError that lists
        all that is wrong with the arguments, before anything runs.
        """
        values = self._arguments.by_position(feeds)
        if output_names is None:
            names: Sequence[str] = self._arguments.output_names
        else:
            names = list(output_names)
            self._arguments.require_outputs(names)
        if out is None:
            results = self._run(values, None)
        else:
            results = self._run(values, self._arguments.out_by_position(names, out))
        return results if output_names is None else [results[self._arguments.output_index[name]] for name in names]

    def run_in_order(self, values: Sequence[Any]) -> list[Any]:
        """Run on one value for each input, in the model's order; returns all outputs. Raises InputError as `run`."""
        if len(values) != len(self._arguments.input_names):
            raise InputError(f"{len(values)} values for {len(self._arguments.input_names)} inputs")
        return self._run(list(values), None)

    def run_async(
        self, output_names: Iterable[str] | None, feeds: Mapping[str, Any], *, out: Out = None, stream: Any = None
    ) -> PendingRun:
        """Start a run and return at once; `wait()` of what it returns gives the outputs. Arguments as for `run`.

        On a GPU the run is asked for on `stream` (a CUDA stream of PyTorch or CuPy, or its number; by default one of
        the model's own), after what was asked of it before. Outputs that `out` does not name are arrays on the GPU
        (`DeviceArray`). Models with loops, branches and new shapes take a while to be asked for. Where a run changes
        state, pads inputs, or gives what is no tensor, and on a CPU, it is run by a thread.

        Raises InputError before anything runs, also for a `stream` where the host has a part in the run.
        """
        values = self._arguments.by_position(feeds)
        names = self._arguments.output_names if output_names is None else list(output_names)
        self._arguments.require_outputs(names)
        targets = None if out is None else self._arguments.out_by_position(names, out)
        executable = self._asynchronous(values)
        if executable is None:
            if stream is not None:
                raise InputError(
                    "stream= is for runs on a GPU alone, and the host has a part in this one: the model is for a CPU, "
                    "changes state, pads its inputs, or has inputs or outputs that are no tensors"
                )
            return PendingRun(self._threads().submit(self.run, names, feeds, out=out))
        started, outputs = executable.start(values, targets, None if stream is None else stream_number(stream))
        return PendingRun(started, [outputs[self._arguments.output_index[name]] for name in names])

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Run on arrays by position or name; returns one array, or a tuple where the model has several outputs."""
        inputs = self._arguments.input_names
        if len(arrays) > len(inputs):
            raise InputError(f"{len(arrays)} arrays for {len(inputs)} inputs: {', '.join(inputs)}")
        feeds = dict(zip(inputs, arrays, strict=False))
        twice = sorted(feeds.keys() & named.keys())
        if twice:
            raise InputError(f"given by position and by name: {', '.join(twice)}")
        results = self.run(None, {**feeds, **named})
        return results[0] if len(results) == 1 else tuple(results)

    def profile(
        self, feeds: Mapping[str, Any], *, runs: int = 3, spans: bool = False, overhead: bool = False
    ) -> "Profile":
        """Run `runs` times and return the times of the fastest run, step by step. The state stays as it was.

        With `spans`, begin and end of every round and task too, `MOST_SPANS` at most. With `overhead` it runs as often
        without a profile, in turns, to say what profiling costs; not where running changes the state.
        """
        from onnxla.runtime.profiler import fastest_of

        runs = whole_number(runs, "runs", 1)
        choice, values = self._prepare(self._arguments.by_position(feeds))
        program, run = choice.executable.program, choice.executable.run
        return fastest_of(
            program.steps,
            lambda profile: run(values, self.num_threads, profile=profile),
            runs,
            spans=spans,
            overhead=overhead and not program.state,
        )

    def run_profiled(self, output_names: Iterable[str] | None, feeds: Mapping[str, Any]) -> "tuple[list[Any], Profile]":
        """As `run`, and the times of that run, step by step. Raises InputError, also for models with state, which a
        run with a profile does not change."""
        from onnxla.runtime.profiler import new_profile, profile_of

        if self.state:
            raise InputError("a run of a model with state is profiled by profile(), which leaves the state as it was")
        names = self._arguments.output_names if output_names is None else list(output_names)
        self._arguments.require_outputs(names)
        choice, values = self._prepare(self._arguments.by_position(feeds))
        profile = new_profile(len(choice.executable.program.steps))
        results = self._chosen_results(choice, partial(choice.executable.run, profile=profile), values, None)
        taken = profile_of(choice.executable.program.steps, profile)
        return [results[self._arguments.output_index[name]] for name in names], taken

    # Looking inside

    @property
    def programs(self) -> tuple[Program, ...]:
        """The specialisations for the device, those used last first."""
        return self._specialisations.programs

    @property
    def about(self) -> Mapping[str, Any]:
        """Facts about how it was compiled: onnxla's version, the model's digest, options."""
        return self._about

    @property
    def report(self) -> "CompileReport | None":
        """What compiling did, for the program made last; None for a model that was loaded."""
        return self.reports[-1] if self.reports else None

    def hlo(self, stage: str = "hlo") -> str:
        """The text of a stage: `hlo` as imported, `optimized_hlo` as compiled, or another of `stages()`."""
        texts = self._latest().texts
        if stage not in texts:
            raise InputError(f"no stage {stage!r}; there are {', '.join(texts)}")
        return texts[stage]

    def stages(self) -> list[str]:
        """The names that `hlo()` takes."""
        return list(self._latest().texts)

    def memory(self) -> "Memory":
        """The memory that the specialisation used last needs."""
        from onnxla.runtime.profiler import memory_of

        return memory_of(self._latest())

    def release_memory(self) -> None:
        """Give the arenas of runs that have ended back to the system, and all memory on a GPU."""
        for executable in self._specialisations.executables:
            executable.release_memory()

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the artifact, with every specialisation there is and the state as it is now.

        Returns its size in bytes. Raises ArtifactError.
        """
        self._latest()
        ordered = sorted((*self.programs, *self._elsewhere), key=lambda p: (p.triple == GPU_TRIPLE, shape_key(p)))
        return write_artifact(path, Artifact(self._signature, tuple(ordered), self._about, dict(self.state)))

    def link(self) -> None:
        """Bring the code into this process now, not at the first run. Raises ArtifactError where it cannot run."""
        for executable in self._specialisations.executables:
            executable.link()

    def warm_up(
        self,
        feeds: Mapping[str, Any] | None = None,
        *,
        shapes: Mapping[str, Sequence[int]] | None = None,
        dims: Mapping[str, int | Sequence[int]] | None = None,
    ) -> int:
        """Have ready what the first runs would wait for: code for these sizes, its weights, threads and memory.

        `shapes` gives shapes of inputs, `dims` sizes of symbolic dimensions, a list for each of several; without them
        everything that is compiled is warmed. Inputs that `feeds` does not have are zeros. Returns how many runs it
        took; they leave the state as it was. Raises InputError for sizes that are missing or do not fit, and for
        inputs whose values the code depends on where `feeds` lacks them.
        """
        from onnxla.runtime.warming import warm_up

        sizes = (shapes_of(shapes), sizes_of(dims))
        return warm_up(self._specialisations, self._signature, self.num_threads, feeds or {}, *sizes)

    # Inside

    def _asynchronous(self, values: list[Any]) -> "DeviceExecutable | None":
        """What runs `values` on a GPU without the host; None where there is no such thing."""
        if self._gpu is None:
            return None
        from onnxla.runtime.device_executable import DeviceExecutable

        found = self._specialisations.quickly(values)
        if found is not None:
            executable, _ = found
        else:
            choice = self._specialisations.choose(self._arguments.arrays(values))
            if choice.rows is not None:
                return None
            executable = choice.executable
        if not isinstance(executable, DeviceExecutable):
            return None
        program = executable.program
        return None if program.state or program.results or program.vocabularies or program.constants else executable

    def _threads(self) -> "ThreadPoolExecutor":
        """Threads for runs that the host has a part in; native code uses more of them for each."""
        with self._starting:
            if self._workers is None:
                from concurrent.futures import ThreadPoolExecutor

                self._workers = ThreadPoolExecutor(1, "onnxla-run")
            return self._workers

    def _latest(self) -> Program:
        if not self._specialisations.executables:
            raise ArtifactError("nothing is compiled yet: run the model once, or give shapes when compiling")
        return self._specialisations.executables[0].program

    def _run(self, values: list[Any], out: list[Any] | None) -> list[Any]:
        found = self._specialisations.quickly(values)
        if found is not None:
            executable, accepted = found
            return self._results(executable.program, executable.run_accepted, accepted, out)
        choice, chosen = self._prepare(values)
        return self._chosen_results(choice, choice.executable.run, chosen, out)

    def _chosen_results(self, choice: Choice, run: _Run, values: Sequence[Any], out: list[Any] | None) -> list[Any]:
        """The outputs, with the rows that were asked for alone where the inputs were padded."""
        program, rows = choice.executable.program, choice.rows
        if rows is None:
            return self._results(program, run, values, out)
        assert program.padding is not None
        if out is not None:
            shapes = program.padding.cut_shapes([o.shape for o in program.outputs], rows)
            require_targets(out, ((o.name, o.dtype, s) for o, s in zip(program.outputs, shapes, strict=True)))
        results = program.padding.cut(self._results(program, run, values, None), rows)
        return results if out is None else into_targets(results, out)

    def _results(self, program: Program, run: _Run, values: Sequence[Any], out: list[Any] | None) -> list[Any]:
        """The model's outputs; `out` has an entry for each."""
        if not program.results:
            return run(values, self.num_threads, out)
        targets = None if out is None else self._arguments.native_out(program, out)
        tensors = run(values, self.num_threads, targets)
        return [result.assembled(tensors) for result in program.results]

    def _prepare(self, values: Sequence[Any]) -> tuple[Choice, list[Array]]:
        """The executable for the shapes (and values) of the inputs, and the arrays that it takes, padded for it."""
        arrays = self._arguments.arrays(values)
        choice = self._specialisations.choose(arrays)
        program = choice.executable.program
        if choice.rows is not None and program.padding is not None:
            arrays = {name: program.padding.padded(name, array) for name, array in arrays.items()}
        return choice, [arrays[t.name] for t in program.inputs]
