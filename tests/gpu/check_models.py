"""`python -m tests.gpu.check_models MODEL ...`: what models compiled for GPUs come to, and their kernels, simulated.

For each model a line: launches, distinct kernels, and per architecture the most registers, the most shared memory and
which kernels spill. With `--blocks 2` the first and the last block of each distinct kernel run in the simulator, at the
model's own shapes, on random numbers: faults are listed, and what the blocks wrote is compared with the interpreter.
Kernels that are launched one after the other for one instruction run whole, and are checked for faults only where that
takes too long.

Models whose shapes are open take inputs from `--inputs FOLDER`: FOLDER/NAME.npz has an array for each. NAME is the
file's name without its ending, or that of its folder for a file called `model`. With `--results FILE` what came of each
model is a line of FILE as soon as it is known, and what is there already is not done again, nor are kernels checked
again that models there have; `--table docs/gpu-models.md` writes the page about all that FILE holds. The exit status is
1 where a model does not compile, a kernel spills more than `--most-spilled` bytes, has a fault or is wrong.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from onnxla.codegen.gpu.target import GpuTarget
from onnxla.config import CompileOptions
from onnxla.errors import InputError, OnnxlaError
from onnxla.hlo.types import Array
from tests.gpu.kernel_checks import CLEAN, RIGHT, TOO_LONG, check_kernels
from tests.gpu.model_kernels import Compiled, compile_kernels, planned


@dataclass
class Row:
    """What came of a model."""

    model: str
    refused: str = ""
    """Why it does not compile."""
    launches: int = 0
    kernels: dict[str, str] = field(default_factory=dict)
    """Digest of each distinct kernel, by symbol."""
    resources: dict[str, dict[str, tuple[int, int, int]]] = field(default_factory=dict)
    """By architecture and symbol: registers, bytes spilled, shared memory."""
    said: dict[str, str] = field(default_factory=dict)
    """Of kernels that no earlier model has, by digest."""
    seconds: float = 0.0
    """Of processor time."""

    def most(self, architecture: str, which: int) -> int:
        return max((used[which] for used in self.resources[architecture].values()), default=0)

    def spills(self, architecture: str) -> dict[str, int]:
        return {symbol: used[1] for symbol, used in self.resources[architecture].items() if used[1]}


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


def name_of(path: Path) -> str:
    return path.parent.name if path.stem == "model" else path.stem


def title(path: Path, precision: str) -> str:
    """What the model's row is called."""
    return name_of(path) if precision == "default" else f"{name_of(path)}, {precision}"


def check(path: Path, given: argparse.Namespace, target: GpuTarget, known: Compiled, said: dict[str, str]) -> Row:
    """Of one model; `said` takes what is said of its kernels."""
    options = CompileOptions(precision=given.precision, target_gpu=given.architectures)
    name, begin = title(path, given.precision), time.process_time()
    try:
        model = planned(path, inputs_of(name_of(path), given.inputs), target, options)
        compile_kernels(model, target.architectures, known)
    except OnnxlaError as error:
        return Row(name, f"{type(error).__name__}: {str(error).splitlines()[0][:150]}")
    row = Row(name, "", model.launches, model.digests)
    for architecture in target.architectures:
        found = {symbol: known.resources[digest, architecture] for symbol, digest in model.digests.items()}
        row.resources[architecture] = {s: (r.registers, r.spilled, r.shared) for s, r in found.items()}
    if given.blocks:
        before = set(said)
        check_kernels(model, given.blocks, given.seconds, known, said)
        row.said = {digest: verdict for digest, verdict in said.items() if digest not in before}
    row.seconds = round(time.process_time() - begin, 1)
    return row


def line(row: Row) -> str:
    """For the terminal, with complaints below it."""
    if row.refused:
        return f"{row.model} | {row.refused}"
    cells = [row.model, str(row.launches), str(len(row.kernels))]
    for architecture in row.resources:
        spills = " ".join(f"{s}:{n}" for s, n in row.spills(architecture).items()) or "-"
        cells.append(f"{row.most(architecture, 0)}, {row.most(architecture, 2)}, {spills}")
    symbols = {digest: symbol for symbol, digest in row.kernels.items()}
    complaints = [f"\n  {symbols[d]}: {verdict}" for d, verdict in row.said.items() if verdict not in (RIGHT, CLEAN)]
    return " | ".join([*cells, f"{row.seconds} s"]) + "".join(complaints)


def complaints(row: Row, most_spilled: int) -> int:
    """How many there are."""
    wrong = sum(verdict not in (RIGHT, CLEAN, TOO_LONG) for verdict in row.said.values())
    spilled = sum(n > most_spilled for a in row.resources for n in row.spills(a).values())
    return bool(row.refused) + wrong + spilled


_HEAD = """# Models compiled for GPUs, and their kernels simulated

Written by `python -m tests.gpu.check_models MODEL ... --blocks 2 --table docs/gpu-models.md`. Each model is compiled at
one set of input shapes; ptxas says for each architecture how many registers a thread of its kernels needs at most, and
what it spills. Of each distinct kernel the first and the last block run in
[the simulator](gpu.md#how-it-is-tested-without-a-gpu), at the model's own shapes, on random numbers. A kernel is clean
where nothing races, reaches out of bounds or is otherwise undefined, and right where also all that its blocks wrote is
what the interpreter says. Kernels that are launched one after the other for one instruction, which read what others
wrote, run whole; where that takes too long, two blocks of each run, and they are clean only. Nothing ran on hardware.
"""


def page(rows: Sequence[Row]) -> str:
    """All that is known of the models, of one set of architectures."""
    compiled = [row for row in rows if not row.refused]
    said = {digest: verdict for row in rows for digest, verdict in row.said.items()}
    digests = {digest for row in compiled for digest in row.kernels.values()}
    counts = {verdict: sum(said.get(d) == verdict for d in digests) for verdict in (RIGHT, CLEAN, TOO_LONG)}
    others = len(digests) - sum(counts.values())
    lines = [
        _HEAD,
        f"{len(rows)} models, {len(compiled)} of which compile, have {len(digests)} distinct kernels: {counts[RIGHT]} "
        f"are right and clean, {counts[CLEAN]} clean, {counts[TOO_LONG]} too long to simulate, {others} wrong.",
        "",
        "| model | launches | kernels | right | clean | " + " | ".join(compiled[0].resources) + " | spilled bytes |",
        "| --- | --: | --: | --: | --: |" + " --: |" * len(compiled[0].resources) + " --- |",
    ]
    for row in compiled:
        found = [said.get(digest) for digest in row.kernels.values()]
        spilled = [f"{n} ({a})" for a in row.resources for n in row.spills(a).values()]
        cells = [row.model, row.launches, len(found), found.count(RIGHT), found.count(CLEAN) or ""]
        cells += [row.most(architecture, 0) for architecture in row.resources]
        lines.append("| " + " | ".join(map(str, [*cells, ", ".join(spilled)])) + " |")
    refused = [f"| {row.model} | {row.refused} |" for row in rows if row.refused]
    if refused:
        lines += ["", "## Refused", "", "| model | error |", "| --- | --- |", *refused]
    wrong = [(row, s, said.get(d)) for row in compiled for s, d in row.kernels.items()]
    unfinished = [f"| {row.model} | {s} | {v} |" for row, s, v in wrong if v not in (RIGHT, CLEAN)]
    if unfinished:
        lines += ["", "## Neither right nor clean", "", "| model | kernel | why |", "| --- | --- | --- |", *unfinished]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--architectures", default="sm_80,sm_90,sm_120")
    parser.add_argument("--precision", default="default")
    parser.add_argument("--inputs", type=Path, help="folder of NAME.npz")
    parser.add_argument("--blocks", type=int, default=0, help="to simulate of each kernel")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of processor time for the kernels of one instruction"
    )
    parser.add_argument("--most-spilled", type=int, default=64, help="bytes of one kernel, stored and loaded")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args(arguments)
    target = GpuTarget.named(given.architectures, tf32=given.precision == "tf32")
    rows: dict[str, Row] = {}
    if given.results is not None and given.results.exists():
        rows = {row["model"]: Row(**row) for row in map(json.loads, given.results.read_text().splitlines())}
    known, said = Compiled(), {d: verdict for row in rows.values() for d, verdict in row.said.items()}
    print("model | launches | kernels | " + " | ".join(f"{a}: registers, shared, spills" for a in target.architectures))
    for path in given.models:
        if title(path, given.precision) in rows:
            continue
        row = rows[title(path, given.precision)] = check(path, given, target, known, said)
        print(line(row), flush=True)
        if given.results is not None:
            with given.results.open("a") as lines:
                lines.write(json.dumps(asdict(row)) + "\n")
    if given.table is not None:
        given.table.write_text(page(sorted(rows.values(), key=lambda row: row.model)))
    bad = sum(complaints(row, given.most_spilled) for row in rows.values())
    print(f"{len(rows)} models, {len(said)} kernels simulated, {bad} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
