"""`python -m tests.gpu.check_models MODEL ...`: what models compiled for GPUs come to, and some blocks of kernels.

For each model a line: launches, distinct kernels, and per architecture the most registers, the most shared memory and
which kernels spill. With `--blocks 2` the first and the last block of each distinct kernel run in the simulator, at the
model's own shapes, on random numbers: faults are listed, and what the blocks wrote is compared with the interpreter.
Kernels that are launched with others for one instruction are checked for faults only.

Models whose shapes are open take inputs from `--inputs FOLDER`: FOLDER/NAME.npz has an array for each. NAME is the
file's name without its ending, or that of its folder for a file called `model`. The exit status is 1 where a model does
not compile, a kernel spills more than `--most-spilled` bytes, has a fault or is wrong.
"""

import argparse
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np

from onnxla.codegen.gpu.backend import _modules, distinct_functions
from onnxla.codegen.gpu.compile_nvrtc import compile_cuda
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.lowering import Lowering
from onnxla.codegen.plan import Launch
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.config import CompileOptions, Limits
from onnxla.errors import InputError, OnnxlaError
from onnxla.frontends.onnx.model_file import read_model
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array, TensorType
from onnxla.passes.pipelines import optimize
from onnxla.sources import OnnxSource
from tests.gpu.ptx_text import PtxKernel, UnsupportedPtx, parse_ptx
from tests.gpu.running import reference, run_blocks, samples

PATTERN = 0xA5
"""In results before a kernel runs: what is still there was not written by the blocks that ran."""


@dataclass(frozen=True)
class Resources:
    """What ptxas reports of a kernel."""

    registers: int
    spilled: int
    """Bytes stored and loaded."""
    shared: int


@dataclass
class Model:
    """What the plan of a model holds."""

    launches: int
    functions: dict[str, str]
    """CUDA C++ of each distinct kernel, by symbol."""
    symbols: dict[Kernel, str]
    lowered: list[tuple[Instruction, Lowering]]


@dataclass
class Known:
    """Kernels of earlier models, by their text without the name, so that none is looked at twice."""

    resources: dict[tuple[str, str], Resources] = field(default_factory=dict)
    ptx: dict[str, PtxKernel] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)


class TooLong(BaseException):
    """A kernel has been simulated for longer than it may."""


def inputs_of(name: str, folder: Path | None) -> dict[str, Array]:
    """Raises InputError for arrays of Python objects."""
    if folder is None or not (folder / f"{name}.npz").exists():
        return {}
    with np.load(folder / f"{name}.npz") as saved:
        try:
            return dict(saved)
        except ValueError as error:
            raise InputError(
                f"{name}.npz holds Python objects ({error}); strings are saved as arrays of str"
            ) from error


def planned(path: Path, inputs: dict[str, Array], target: GpuTarget, options: CompileOptions) -> Model:
    """Raises an OnnxlaError for what does not compile."""
    source = OnnxSource(read_model(path), options, Limits.from_environment(), {})
    module = source.load({name: value.shape for name, value in inputs.items()}, {}, inputs).module
    optimize(module, "gpu", options)
    lowered: list[tuple[Instruction, Lowering]] = []

    def lowering(instruction: Instruction) -> Lowering:
        found = lower(instruction, target)
        lowered.append((instruction, found))
        return found

    plan = make_plan(module, lowering, WeightsImage())
    symbols, functions = distinct_functions(plan)
    return Model(sum(isinstance(s, Launch) for s in plan.steps), functions, symbols, lowered)


def body(function: str) -> str:
    """Its text from the parameters on."""
    return function[function.index("(", function.index("__launch_bounds__") + 20) :]


def compile_all(model: Model, architectures: Sequence[str], known: Known) -> None:
    """Fill in the resources of every kernel, and the PTX for the first architecture."""
    for architecture in architectures:
        fresh = {s: f for s, f in model.functions.items() if (body(f), architecture) not in known.resources}
        for names in _modules(fresh):
            made = compile_cuda("\n".join(fresh[name] for name in names), architecture)
            for name, resources in resources_of(made.log):
                known.resources[body(fresh[name]), architecture] = resources
            if architecture == architectures[0]:
                kernels = parse_ptx(made.ptx)
                known.ptx |= {body(fresh[name]): kernels[name] for name in names}


def resources_of(log: str) -> Iterator[tuple[str, Resources]]:
    """Of each kernel that ptxas speaks of."""
    for part in log.split("Compiling entry function '")[1:]:
        registers = re.search(r"Used (\d+) registers", part)
        assert registers, part
        shared = re.search(r"(\d+) bytes smem", part)
        spilled = sum(int(n) for n in re.findall(r"(\d+) bytes spill", part))
        yield part[: part.index("'")], Resources(int(registers[1]), spilled, int(shared[1]) if shared else 0)


def check_blocks(model: Model, count: int, seconds: float, known: Known) -> Iterator[str]:
    """Complaints about the kernels that no earlier model had."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, stop)
    for instruction, lowering in model.lowered:
        texts = [body(model.functions[model.symbols[call.kernel]]) for call in lowering.calls]
        if not texts or set(texts) <= known.checked:
            continue
        known.checked |= set(texts)
        name = model.symbols[lowering.calls[0].kernel]
        try:
            signal.setitimer(signal.ITIMER_PROF, seconds)
            complaint = faults(instruction, lowering, [known.ptx[text] for text in texts], count)
        except TooLong:
            complaint = "too long"
        except UnsupportedPtx as error:
            complaint = f"not simulated: {error}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if complaint:
            yield f"{name}: {complaint}"


def faults(instruction: Instruction, lowering: Lowering, kernels: list[PtxKernel], count: int) -> str:
    """What is wrong with the first and the last blocks of an instruction's kernels; empty where nothing is."""
    arrays = samples(instruction)
    results, reports = run_blocks(lowering, instruction, arrays, kernels, count, PATTERN)
    if reports:
        return f"faults {dict(list(reports.items())[:2])}"
    if len(lowering.calls) > 1 or lowering.copies or not isinstance(instruction.type, TensorType):
        return ""
    (result,) = results
    untouched = np.full(result.dtype.itemsize, PATTERN, np.uint8).view(result.dtype)
    written = result.reshape(-1).view(f"u{result.dtype.itemsize}") != untouched.view(f"u{result.dtype.itemsize}")
    if not written.any() and result.size:
        return "nothing was written"
    (expected,) = reference(instruction, arrays)
    ours, theirs = result.reshape(-1)[written], expected.reshape(-1)[written]
    if ours.dtype.kind not in "fV":
        # quantised values may be rounded to either side
        wrong = np.abs(ours.astype("f8") - theirs.astype("f8")) > (1 if ours.dtype.itemsize == 1 else 0)
    else:
        tolerance = 2e-2 if ours.dtype.itemsize == 2 else 2e-3
        scale = np.abs(theirs[np.isfinite(theirs)].astype("f8")).max(initial=1e-3)
        wrong = ~np.isclose(ours.astype("f8"), theirs.astype("f8"), tolerance, tolerance * scale, equal_nan=True)
    return f"{wrong.sum()} of {written.sum()} values are wrong" if wrong.mean() > 1e-3 else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--architectures", default="sm_80,sm_90,sm_120")
    parser.add_argument("--precision", default="default")
    parser.add_argument("--inputs", type=Path, help="folder of NAME.npz")
    parser.add_argument("--blocks", type=int, default=0, help="to simulate of each kernel")
    parser.add_argument("--seconds", type=float, default=20.0, help="of processor time for the blocks of one kernel")
    parser.add_argument("--most-spilled", type=int, default=64, help="bytes of one kernel, stored and loaded")
    given = parser.parse_args()
    target = GpuTarget.named(given.architectures, tf32=given.precision == "tf32")
    options = CompileOptions(precision=given.precision, target_gpu=given.architectures)
    known, bad = Known(), 0
    print("model | launches | kernels | " + " | ".join(f"{a}: registers, shared, spills" for a in target.architectures))
    for path in given.models:
        name = path.parent.name if path.stem == "model" else path.stem
        begin = time.process_time()
        try:
            model = planned(path, inputs_of(name, given.inputs), target, options)
            compile_all(model, target.architectures, known)
        except OnnxlaError as error:
            bad += 1
            print(f"{name} | {type(error).__name__}: {str(error).splitlines()[0][:150]}", flush=True)
            continue
        row = [name, str(model.launches), str(len(model.functions))]
        for architecture in target.architectures:
            found = {s: known.resources[body(f), architecture] for s, f in model.functions.items()}
            spills = {s: r.spilled for s, r in found.items() if r.spilled}
            bad += sum(spilled > given.most_spilled for spilled in spills.values())
            most = [max((getattr(r, what) for r in found.values()), default=0) for what in ("registers", "shared")]
            row.append(f"{most[0]}, {most[1]}, {' '.join(f'{s}:{n}' for s, n in spills.items()) or '-'}")
        print(" | ".join(row), f"| {time.process_time() - begin:.1f} s", flush=True)
        if given.blocks:
            for complaint in check_blocks(model, given.blocks, given.seconds, known):
                bad += "too long" not in complaint
                print(f"  {complaint}", flush=True)
    print(f"{len(known.resources)} compiled, {len(known.checked)} simulated, {bad} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
