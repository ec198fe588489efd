"""`onnxla bench`: the time of a run against onnxruntime's, in turns, on the same threads."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation
from onnxla.cli.models import clusters_of, is_artifact, load_and_feed, request
from onnxla.cli.output import duration, print_json, say, table
from onnxla.debugging.comparison import compare_all
from onnxla.debugging.parts import flat_outputs
from onnxla.debugging.witness import Witness
from onnxla.errors import InputError

Rounds = Annotated[int, typer.Option("--rounds", min=1, help="How often the two take turns.")]
Burst = Annotated[
    float,
    typer.Option(
        "--burst", min=0.0, callback=arguments.sensible, help="Seconds that each runs in a round, at least 3 runs."
    ),
]
_WARMUP = 3
_LEAST = 3


@dataclass(frozen=True)
class Timing:
    """The runs of one of the two, in seconds."""

    name: str
    median: float
    fastest: float
    runs: int


def bench(
    model: arguments.OnnxModel,
    *,
    input: arguments.Inputs = None,
    seed: arguments.Seed = 0,
    threads: arguments.Threads = 1,
    rounds: Rounds = 7,
    burst: Burst = 0.2,
    how: Compilation,
    fallback: arguments.Fallback = None,
    as_json: arguments.Json = False,
) -> None:
    """Time a model against onnxruntime with its default settings. Ends with 1 where their results differ.

    The two take turns, so that noise of the machine meets both; the ratio is the median over the rounds.
    """
    if is_artifact(model):
        raise InputError(f"{model} is compiled; bench takes the ONNX model, which onnxruntime runs too")
    wanted = request(model, how, threads=threads, fallback=fallback)
    loaded = load_and_feed(wanted, input, seed)
    compiled, feeds = loaded.model, loaded.feeds
    witness = Witness(model, compiled.num_threads)
    arrays, all_arrays = feeds.arrays, {**wanted.constants, **feeds.arrays}
    names = [t.name for t in compiled.get_outputs()]
    theirs = flat_outputs(witness.run(all_arrays, names))
    mine = flat_outputs(loaded.run())
    differing = [c.name for c in compare_all(mine, theirs) if not c.agrees]

    def run_ours() -> object:
        return compiled.run(None, arrays)

    run_theirs = witness.runner(all_arrays)

    for _ in range(_WARMUP):
        run_ours(), run_theirs()
    ours: list[list[float]] = []
    others: list[list[float]] = []
    for _ in range(rounds):
        ours.append(_burst(run_ours, burst))
        others.append(_burst(run_theirs, burst))
    timings = [_timing("onnxla", ours), _timing(f"onnxruntime {witness.version}", others)]
    ratio = statistics.median(statistics.median(b) / statistics.median(a) for a, b in zip(ours, others, strict=True))
    clusters = clusters_of(compiled)
    if as_json:
        parts = {} if clusters is None else {"clusters": clusters.clusters}
        print_json(
            {"threads": compiled.num_threads, "timings": timings, "ratio": ratio, "differing": differing, **parts}
        )
    else:
        rows = [(t.name, duration(t.median), duration(t.fastest), t.runs) for t in timings]
        table(
            ("runtime", ">median", ">fastest", ">runs"), rows, f"{model.name}, at most {compiled.num_threads} threads"
        )
        if clusters is not None:
            say(clusters, style="dim")
        say(f"onnxla is {ratio:.2f} times as fast as onnxruntime", style="bold")
        if differing:
            say(f"the results differ in {', '.join(differing)}: see onnxla validate", style="bold red")
    if differing:
        raise typer.Exit(1)


def _burst(run: Callable[[], object], seconds: float) -> list[float]:
    """Times of runs one after the other. The first is not counted: it finds the caches full of the other's data."""
    run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < _LEAST or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def _timing(name: str, bursts: list[list[float]]) -> Timing:
    times = [t for one in bursts for t in one]
    return Timing(name, statistics.median(times), min(times), len(times))
