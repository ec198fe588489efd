"""`onnxla bench`: the time of a run against onnxruntime's and other runtimes', in turns, on the same threads."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation
from onnxla.cli.models import clusters_of, is_artifact, load_and_feed, request
from onnxla.cli.output import duration, print_json, say, table
from onnxla.debugging.comparison import compare_all
from onnxla.debugging.parts import flat_outputs
from onnxla.errors import InputError
from onnxla.peers.runtimes import JUDGE, runtimes
from onnxla.peers.turns import take_turns
from onnxla.runtime.tensors import Array

Beside = Annotated[
    list[str] | None,
    typer.Option(
        "--beside",
        metavar="RUNTIME",
        help="A further runtime to time, if it is installed: openvino. May be repeated.",
    ),
]
Rounds = Annotated[int, typer.Option("--rounds", min=1, help="How often they take turns.")]
Burst = Annotated[
    float,
    typer.Option(
        "--burst", min=0.0, callback=arguments.sensible, help="Seconds that each runs in a round, at least 3 runs."
    ),
]
_OURS = "onnxla"


def bench(
    model: arguments.OnnxModel,
    *,
    input: arguments.Inputs = None,
    seed: arguments.Seed = 0,
    beside: Beside = None,
    threads: arguments.Threads = 1,
    rounds: Rounds = 7,
    burst: Burst = 0.2,
    how: Compilation,
    fallback: arguments.Fallback = None,
    as_json: arguments.Json = False,
) -> None:
    """Time a model against onnxruntime with its default settings. Ends with 1 where their results differ.

    They take turns, so that noise of the machine meets all; a ratio is the median over the rounds. Results of the
    runtimes of --beside are compared with ours too; where they differ it is said, and onnxruntime is the judge.
    """
    if is_artifact(model):
        raise InputError(f"{model} is compiled; bench takes the ONNX model, which onnxruntime runs too")
    chosen = runtimes(beside or ())
    wanted = request(model, how, threads=threads, fallback=fallback)
    loaded = load_and_feed(wanted, input, seed)
    compiled, arrays = loaded.model, loaded.feeds.arrays
    all_arrays = {**wanted.constants, **arrays}
    names = [t.name for t in compiled.get_outputs()]
    ours = flat_outputs(loaded.run())
    peers = [runtime.load(model, compiled.num_threads, all_arrays) for runtime in chosen]
    differing = {peer.name: _differing(ours, peer.run(all_arrays, names)) for peer in peers}
    runs = {_OURS: lambda: compiled.run(None, arrays)} | {peer.name: peer.runner(all_arrays) for peer in peers}
    timings = take_turns(runs, rounds, burst)
    ratios = {t.name: t.ratio for t in timings if t.name != _OURS}
    versions = {peer.name: peer.version for peer in peers}
    clusters = clusters_of(compiled)
    if as_json:
        each = {n: {"version": versions[n], "ratio": ratios[n], "differing": differing[n]} for n in ratios}
        parts = {} if clusters is None else {"clusters": clusters.clusters}
        judged = {"ratio": ratios[JUDGE], "differing": differing[JUDGE]}
        print_json({"threads": compiled.num_threads, "timings": timings, **judged, "peers": each, **parts})
    else:
        rows = [
            (f"{t.name} {versions.get(t.name, '')}", duration(t.median), duration(t.fastest), t.runs) for t in timings
        ]
        table(
            ("runtime", ">median", ">fastest", ">runs"), rows, f"{model.name}, at most {compiled.num_threads} threads"
        )
        if clusters is not None:
            say(clusters, style="dim")
        for name, ratio in ratios.items():
            say(f"onnxla is {ratio:.2f} times as fast as {name}", style="bold")
        for name, outputs in differing.items():
            if outputs:
                say(f"the results of {name} differ in {', '.join(outputs)}: see onnxla validate", style="bold red")
    if differing[JUDGE]:
        raise typer.Exit(1)


def _differing(ours: Mapping[str, Array], theirs: Mapping[str, Any]) -> list[str]:
    """The outputs in which two results differ by more than their type allows."""
    return [c.name for c in compare_all(ours, flat_outputs(theirs)) if not c.agrees]
