"""`onnxla profile`: where the time of a run goes, beside what the machine could do."""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onnxla import CompiledModel
from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation, Cut
from onnxla.cli.models import load_and_feed, request
from onnxla.cli.output import count, duration, plain, print_json, say, table
from onnxla.cli.outputs import require_distinct, write_output
from onnxla.runtime.profiler import Profile, ProfileRow
from onnxla.runtime.program import GPU_TRIPLE

if TYPE_CHECKING:
    from onnxla.roofline.limits import Limits

Runs = Annotated[int, typer.Option("--runs", min=1, help="How often to run; the fastest run is shown.")]
Top = Annotated[int | None, typer.Option("--top", min=1, help="Show only the slowest steps.")]
Trace = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="A file for Chrome's trace events: open it in ui.perfetto.dev."),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="A file for the page of the model, with these times.")
]
Measure = Annotated[bool, typer.Option("--measure", help="Measure the machine's limits again.")]

PREDICTED_WITHIN = 1.5
"""The factor that the cost model promises."""


def profile(
    model: arguments.Model,
    *,
    input: arguments.Inputs = None,
    seed: arguments.Seed = 0,
    runs: Runs = 10,
    top: Top = None,
    trace: Trace = None,
    html: Html = None,
    measure: Measure = False,
    threads: arguments.Threads = None,
    how: Compilation,
    cut: Cut,
    as_json: arguments.Json = False,
) -> None:
    """Time each kernel of a run, beside the least time that this machine needs for its bytes and operations."""
    require_distinct(model, trace, html)
    wanted = request(model, how, threads=threads, cut=cut)
    loaded = load_and_feed(wanted, input, seed)
    compiled, feeds = loaded.model, loaded.feeds
    found = compiled.profile(feeds.arrays, runs=runs, spans=trace is not None, overhead=True)
    limits = _limits(compiled, measure)
    if limits is not None and _beaten(found, limits):  # something else was running when they were measured
        limits = _limits(compiled, again=True)
    if trace is not None:
        _write_trace(trace, found, model.name)
    if html is not None:
        from onnxla.cli.page_file import write_page

        write_page(html, compiled, model.name, found, limits)
    if as_json:
        print_json(_document(found, limits, compiled.memory().weights))
        return
    if feeds.random:
        say(f"random inputs (seed {seed}): {', '.join(feeds.random)}", style="dim")
    _print(found, limits, compiled, top)


def _limits(compiled: CompiledModel, again: bool) -> "Limits | None":
    """Those of this machine; None for a model that runs on a GPU, of which nothing is measured."""
    if compiled.programs[0].triple == GPU_TRIPLE:
        return None
    from onnxla.roofline.stored import machine_limits

    return machine_limits(compiled.num_threads, again=again)


def _beaten(found: Profile, limits: "Limits") -> bool:
    """Whether a kernel that ran for a while computed faster than the machine is said to."""
    return any(row.gigaflops > 1.05 * limits.gigaflops and row.seconds > 20e-6 * row.rounds for row in found.rows)


def _write_trace(path: Path, found: Profile, name: str) -> None:
    from onnxla.runtime.trace import chrome_trace

    write_output(path, json.dumps(chrome_trace(found, name), ensure_ascii=True) + "\n")


def _document(found: Profile, limits: "Limits | None", weights: int) -> dict[str, Any]:
    rows = [
        {
            **plain(row.step),
            "seconds": row.seconds,
            "rounds": row.rounds,
            "floor_seconds": _floor(row, limits),
            "predicted_seconds": _predicted(row, limits, weights),
            "bound": None if limits is None else limits.bound(row.step),
        }
        for row in found.rows
    ]
    machine = None if limits is None else limits.json()
    return {"seconds": found.seconds, "overhead": found.overhead, "machine": machine, "steps": rows}


def _floor(row: ProfileRow, limits: "Limits | None") -> float | None:
    """The least time of all rounds of a step; None for loops and branches, whose steps have it."""
    if limits is None or not (row.step.kernel or row.step.op == "copy"):
        return None
    return limits.seconds(row.step) * row.rounds


def _predicted(row: ProfileRow, limits: "Limits | None", weights: int) -> float | None:
    """What the cost model says of all rounds of a step; None where there is no floor either."""
    if limits is None or not (row.step.kernel or row.step.op == "copy"):
        return None
    return limits.predicted(row.step, weights) * row.rounds


def judged(rows: Sequence[ProfileRow], seconds: float, limits: "Limits", weights: int) -> tuple[int, int, float]:
    """How well the cost model does: of the kernels that take more than a hundredth of a run, how many there are, for
    how many it is within PREDICTED_WITHIN, and their part of the time of all of them."""
    heavy = [(row.seconds, _predicted(row, limits, weights)) for row in rows if row.seconds > 0.01 * seconds]
    found = [(time, predicted) for time, predicted in heavy if predicted is not None]
    near = [time for time, predicted in found if 1 / PREDICTED_WITHIN <= predicted / time <= PREDICTED_WITHIN]
    return len(found), len(near), sum(near) / (sum(time for time, _ in found) or 1.0)


def _print(found: Profile, limits: "Limits | None", compiled: CompiledModel, top: int | None) -> None:
    groups = list(found.grouped())
    weights = compiled.memory().weights
    rows = [_line(r, found, limits, weights) for outer, inner in groups[:top] for r in (outer, *inner)]
    columns = (
        ">us",
        ">%",
        ">rounds",
        ">GB/s",
        ">GFLOP/s",
        ">floor us",
        ">x floor",
        ">predicted us",
        "bound",
        "step",
        "node of the model",
    )
    table(columns, rows)
    if top is not None and top < len(groups):
        say(f"{count(len(groups) - top, 'more step')} take {duration(sum(outer.seconds for outer, _ in groups[top:]))}")
    _print_kernels(found, limits)
    say(
        f"{duration(found.seconds)} in {count(len(found.outer), 'step')}, {count(compiled.num_threads, 'thread')}",
        style="bold",
    )
    if found.overhead is not None:
        say(f"profiling itself: {found.overhead:+.1%} of a run")
    if limits is not None:
        floor = sum(_floor(row, limits) or 0.0 for row in found.rows)
        say(f"floor {duration(floor)}: the run takes {found.seconds / floor:.2f} times as long" if floor else "")
        known, near, part = judged(found.rows, found.seconds, limits, weights)
        say(
            f"cost model: {near} of {known} kernels that take over 1 % of the run, {part:.0%} of their time, within "
            f"{PREDICTED_WITHIN:g} times"
        )
        memories = ", ".join(f"{m.name} {m.gigabytes_per_second:.0f} GB/s" for m in limits.memories)
        say(f"this machine, measured: {limits.gigaflops:.0f} GFLOP/s in fp32, {memories}", style="dim")


def _line(row: ProfileRow, found: Profile, limits: "Limits | None", weights: int) -> Sequence[object]:
    step, floor = row.step, _floor(row, limits)
    predicted = _predicted(row, limits, weights)
    more = f" and {len(step.also)} more" if step.also else ""
    return (
        f"{row.seconds * 1e6:.1f}",
        f"{row.seconds / found.seconds:.1%}" if found.seconds else "",
        row.rounds if row.rounds != 1 else "",
        f"{row.gigabytes_per_second:.1f}" if step.bytes else "",
        f"{row.gigaflops:.1f}" if step.flops else "",
        "" if floor is None else f"{floor * 1e6:.1f}",
        f"{row.seconds / floor:.1f}" if floor and row.rounds else "",
        "" if predicted is None else f"{predicted * 1e6:.1f}",
        "" if floor is None or limits is None else limits.bound(step),
        "  " * step.depth + step.name,
        step.source + more,
    )


def _print_kernels(found: Profile, limits: "Limits | None") -> None:
    """The same by name of kernel: fusions are named after what they compute."""
    seconds: dict[str, float] = defaultdict(float)
    floors: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for row in found.rows:
        if row.step.kernel or row.step.op == "copy":
            name = kernel_name(row.step.kernel) or row.step.op
            seconds[name] += row.seconds
            floors[name] += _floor(row, limits) or 0.0
            counts[name] += row.rounds
    rows = [
        (
            name,
            counts[name],
            duration(time),
            f"{time / found.seconds:.1%}" if found.seconds else "",
            f"{time / floors[name]:.1f}" if floors[name] else "",
        )
        for name, time in sorted(seconds.items(), key=lambda item: -item[1])
    ]
    table(("kernel", ">runs", ">time", ">%", ">x floor"), rows)


def kernel_name(symbol: str) -> str:
    """`dot_add_fusion` for the symbol `onnxla_12_dot_add_fusion`."""
    return re.sub(r"^onnxla_\d+_", "", symbol)
