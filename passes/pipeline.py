"""Run passes in order: time each, verify after each change, dump, leave out, stop early."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxla import watch
from onnxla.config import CompileOptions
from onnxla.errors import HloError, InputError, InternalError
from onnxla.files import write_file
from onnxla.hlo.module import Module
from onnxla.hlo.printer import print_module
from onnxla.hlo.verifier import verify
from onnxla.hlo.weight_files import write_weights
from onnxla.passes.pass_base import Pass


@dataclass(frozen=True)
class PassRecord:
    """What one pass did."""

    name: str
    seconds: float
    """Time of the pass itself; verifying and dumping are not in it."""
    memory_bytes: int
    """By how much the pass raised the most memory that the process has had at once."""
    changed: bool
    instructions: int
    """In all computations, after the pass."""
    stats: dict[str, int]


@dataclass
class PipelineReport:
    """What a pipeline did, pass by pass."""

    records: list[PassRecord] = field(default_factory=list)
    stopped_after: str | None = None

    @property
    def seconds(self) -> float:
        return sum(r.seconds for r in self.records)

    def total(self, stat: str) -> int:
        """The sum of one statistic over all passes."""
        return sum(r.stats.get(stat, 0) for r in self.records)

    def __str__(self) -> str:
        rows = [f"{'pass':<28} {'ms':>8} {'instructions':>13}  what"]
        for r in self.records:
            what = ", ".join(f"{name} {count}" for name, count in r.stats.items()) if r.changed else "-"
            rows.append(f"{r.name:<28} {r.seconds * 1e3:8.1f} {r.instructions:13d}  {what}")
        return "\n".join(rows)


class Pipeline:
    """Passes in order. Names may repeat; a disabled name is left out everywhere it stands."""

    def __init__(self, passes: Sequence[Pass], options: CompileOptions, name: str = "pipeline") -> None:
        self.passes = list(passes)
        self.options = options
        self.name = name
        known = {p.name for p in self.passes}
        for wanted in (*options.disabled_passes, *([options.stop_after] if options.stop_after else [])):
            if wanted not in known:
                raise InputError(f"no pass is called {wanted!r}; the passes are {', '.join(sorted(known))}")

    def run(self, module: Module, progress: Callable[[str], None] | None = None) -> PipelineReport:
        """Rewrite `module`. Raises InternalError, naming the pass, when a pass breaks the module.

        With `options.dump_to`, writes `00-input.hlo` and `NN-<pass>.hlo` after each pass that changed something, and
        the weights beside them.
        `progress` is told the name of each pass before it runs.
        """
        report = PipelineReport()
        last_dump = self._dump(module, 0, "input")
        for position, one in enumerate(self.passes, start=1):
            if one.name in self.options.disabled_passes:
                continue
            if progress is not None:
                progress(one.name)
            peak, start = watch.peak_memory(), time.perf_counter()
            with watch.span(f"passes: {one.name}", (position - 1) / len(self.passes), position / len(self.passes)):
                changed = one.run(module)
            seconds, growth = time.perf_counter() - start, watch.peak_memory() - peak
            instructions = sum(len(c.instructions()) for c in module.computations())
            report.records.append(PassRecord(one.name, seconds, growth, changed, instructions, dict(one.stats)))
            if changed and self.options.verify:
                self._verify(module, one, last_dump)
            if changed:
                last_dump = self._dump(module, position, one.name) or last_dump
            if one.name == self.options.stop_after:
                report.stopped_after = one.name
                break
        return report

    def _verify(self, module: Module, culprit: Pass, last_dump: Path | None) -> None:
        try:
            verify(module)
        except HloError as error:
            before = last_dump if last_dump is not None else "the dump before it (set ONNXLA_DUMP_TO=<folder>)"
            raise InternalError(
                f"the pass {culprit.name} of the {self.name} broke the module: {error}\n"
                f"  replay it: onnxla opt {before} --passes {culprit.name}"
            ) from error

    def _dump(self, module: Module, position: int, name: str) -> Path | None:
        if self.options.dump_to is None:
            return None
        folder = Path(self.options.dump_to)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{position:02d}-{name}.hlo"
        write_file(path, print_module(module))
        if self.options.dump_weights:
            write_weights(path, module)
        return path
