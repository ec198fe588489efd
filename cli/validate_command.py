"""`onnxla validate`: the compiled model against onnxruntime, whole outputs or every layer."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation, Cut
from onnxla.cli.comparison_table import print_comparisons
from onnxla.cli.feeds import Feeds
from onnxla.cli.models import Request, clusters_of, is_artifact, load_and_feed, request
from onnxla.cli.output import print_json, say, table, verdict
from onnxla.cli.outputs import require_distinct
from onnxla.cli.precision_report import TOLERANCES, print_ranges, ranges_document
from onnxla.config import GPU_PRECISIONS
from onnxla.debugging.comparison import Comparison, compare, compare_all
from onnxla.debugging.parts import flat_outputs
from onnxla.errors import InputError
from onnxla.peers.onnxruntime_peer import OnnxruntimePeer
from onnxla.runtime.tensors import Array
from onnxla.runtime.thread_pool import default_threads

if TYPE_CHECKING:
    from onnxla.debugging.exact import Exactness
    from onnxla.debugging.layers import LayeredModel
    from onnxla.debugging.ranges import Ranges

Compiled = Annotated[
    Path | None, typer.Option("--compiled", help="Judge this artifact, made from the model, instead of compiling.")
]
Layers = Annotated[
    bool, typer.Option("--layers", help="Compare every value of the graph, and name the first node that differs.")
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        help="Judge both against the model in float64 (slow): an output that errs at most twice as much as "
        "onnxruntime's, or 1e-5, is right too.",
    ),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="With --layers: write every value into an HTML page.")
]
_SHOWN = 20
"""Most layers that are listed."""


def validate(
    model: arguments.UncompiledModel,
    *,
    input: arguments.Inputs = None,
    compiled: Compiled = None,
    layers: Layers = False,
    html: Html = None,
    exact: Exact = False,
    seed: arguments.Seed = 0,
    rtol: arguments.Rtol = None,
    atol: arguments.Atol = None,
    threads: arguments.Threads = None,
    how: Compilation,
    fallback: arguments.Fallback = None,
    cut: Cut,
    as_json: arguments.Json = False,
) -> None:
    """Compare a compiled model with onnxruntime. Ends with 1 where an output differs.

    Outputs that come with the inputs (an .npz entry under an output's name, output_0.pb) are compared as well; a
    TensorFlow model, which onnxruntime does not read, is compared with those alone. HLO is compared with what XLA
    computes of it where jaxlib is installed, else with the interpreter.

    With --precision the factors of products are rounded, and watched: nodes where numbers overflow are named, and the
    command ends with 1. Without --target gpu the rounding is imitated on the CPU.
    """
    if is_artifact(model):
        raise InputError(f"{model} is compiled; give the ONNX model, and the artifact with --compiled")
    require_distinct(model, html)
    if html is not None and not layers:
        raise InputError("--html is for --layers")
    if fallback is not None and (layers or exact):
        raise InputError("--layers and --exact are for models that are compiled as a whole, without --fallback")
    wanted = request(model, how, threads=threads, cut=cut, fallback=fallback)
    rounds = wanted.options.precision in GPU_PRECISIONS
    imitated = rounds and how.target == "cpu" and compiled is None
    if rounds:
        rtol, atol = (TOLERANCES[wanted.options.precision] if t is None else t for t in (rtol, atol))
        if layers or exact or fallback is not None:
            raise InputError("--layers, --exact and --fallback are for models in their own precision")
    plain = replace(wanted, options=replace(wanted.options, precision="default", keep_f32=()))
    loaded = load_and_feed(plain if imitated else wanted, input, seed, compiled)
    ours, feeds = loaded.model, loaded.feeds
    names = [t.name for t in ours.get_outputs()]
    if imitated:
        from onnxla.debugging.ranges import rounded_outputs

        results = rounded_outputs(wanted.source(), feeds.arrays, wanted.options)
    else:
        results = flat_outputs(loaded.run())
    judged, theirs = "", results
    rows: dict[str, list[Comparison]] = {}
    if wanted.is_hlo:
        if layers or exact:
            raise InputError("--layers and --exact are for ONNX models")
        from onnxla.cli.hlo_judge import judge_of_hlo

        judged, theirs = judge_of_hlo(wanted, feeds.arrays, names)
        rows[judged] = compare_all(results, theirs, rtol, atol)
    elif wanted.is_tensorflow:
        _require_expectations(wanted, feeds, layers or exact)
    else:
        witness = OnnxruntimePeer(model, threads or default_threads())
        theirs = flat_outputs(witness.run({**wanted.constants, **feeds.arrays}, names))
        judged = f"onnxruntime {witness.version}"
        rows[judged] = compare_all(results, theirs, rtol, atol)
    if feeds.expected:
        rows["given"] = [compare(name, results[name], value, rtol, atol) for name, value in feeds.expected.items()]
    judgements = _judge_exactly(wanted, feeds, results, theirs) if exact else []
    excused = {j.name for j in judgements if j.agrees}
    agrees = all(c.agrees or (side == judged and c.name in excused) for side, found in rows.items() for c in found)
    layered, differing = None, None
    if layers:
        from onnxla.debugging.layers import with_every_layer

        layered = with_every_layer(wanted.path)
        differing = _compare_layers(layered, wanted, feeds, rtol, atol)
    if html is not None and layered is not None and differing is not None:
        from onnxla.cli.layers_page import write_layers_page

        drawn = f"random (seed {seed}): {', '.join(feeds.random)}" if feeds.random else "given"
        write_layers_page(html, model.name, judged, rows, differing, layered.nodes, drawn)
    ranges = _ranges(wanted, feeds) if rounds else None
    if as_json:
        print_json(
            {
                "agrees": agrees,
                "ranges": None if ranges is None else ranges_document(ranges),
                "witness": judged or "given",
                "random": feeds.random,
                "outputs": rows,
                "exact": judgements if exact else None,
                "layers": differing,
            }
        )
    else:
        if feeds.random:
            say(f"random inputs (seed {seed}): {', '.join(feeds.random)}", style="dim")
        for against, comparisons in rows.items():
            print_comparisons(comparisons, f"outputs against {'the values given' if against == 'given' else against}")
        if judgements:
            _print_judgements(judgements, judged)
        if layered is not None and differing is not None:
            _print_layers(layered, differing, agrees)
        if ranges is not None:
            print_ranges(ranges)
            where = "imitated on the CPU" if imitated else f"on {ours.device}"
            say(f"{wanted.options.precision} factors, f32 sums, {where}; rtol {rtol:g}, atol {atol:g}", style="dim")
        clusters = clusters_of(ours)
        if clusters is not None:
            say(clusters, style="dim")
        say("every output agrees" if agrees else "outputs differ", style="bold green" if agrees else "bold red")
    overflows = ranges is not None and bool(ranges.overflowing)
    if not agrees or overflows or not all(c.agrees for c in differing or ()):
        raise typer.Exit(1)


def _require_expectations(wanted: Request, feeds: Feeds, needs_onnx: bool) -> None:
    """Raise InputError where there is nothing to compare a TensorFlow model with."""
    if needs_onnx:
        raise InputError("--layers and --exact are for ONNX models")
    if not feeds.expected:
        raise InputError(
            f"onnxruntime does not read TensorFlow models such as {wanted.path}: give the outputs to compare with, "
            "--input file.npz with an entry under each output's name"
        )


def _ranges(wanted: Request, feeds: Feeds) -> "Ranges":
    from onnxla.debugging.ranges import watch_ranges

    return watch_ranges(wanted.source(), feeds.arrays, wanted.options)


def _judge_exactly(
    wanted: Request, feeds: Feeds, ours: Mapping[str, Array], theirs: Mapping[str, Array]
) -> list["Exactness"]:
    from onnxla.debugging.exact import exact_outputs, exactness

    exact = exact_outputs(wanted.source(), feeds.arrays)
    return [
        exactness(name, ours[name], theirs[name], exact[name])
        for name in ours.keys() & theirs.keys() & exact.keys()
        if ours[name].dtype.kind not in "OSU" and ours[name].shape == theirs[name].shape == exact[name].shape
    ]


def _print_judgements(judgements: list["Exactness"], judged: str) -> None:
    rows = [
        (j.name, f"{j.ours:.2e}", f"{j.theirs:.2e}", verdict(j.agrees, "as exact" if j.agrees else "LESS EXACT"))
        for j in judgements
    ]
    table(("output", ">onnxla", f">{judged}", "verdict"), rows, "norm-wise error against the model in float64")


def _compare_layers(
    layered: "LayeredModel", wanted: Request, feeds: Feeds, rtol: float | None, atol: float | None
) -> list[Comparison]:
    """Every value of the graph, in the order of its nodes, compiled with all of them as outputs."""
    folder = wanted.path.parent
    ours = wanted.compile(layered.model, folder=folder)
    names = [t.name for t in ours.get_outputs()]
    results = flat_outputs(dict(zip(names, ours.run(None, feeds.arrays), strict=True)))
    witness = OnnxruntimePeer(layered.model.SerializeToString(), wanted.threads or default_threads(), folder=folder)
    theirs = flat_outputs(witness.run({**wanted.constants, **feeds.arrays}, list(layered.nodes)))
    tensors = [name for name in layered.nodes if name in results and name in theirs]
    return [compare(name, results[name], theirs[name], rtol, atol) for name in tensors]


def _print_layers(layered: "LayeredModel", found: list[Comparison], outputs_agree: bool) -> None:
    wrong = [c for c in found if not c.agrees]
    shown = wrong[:_SHOWN]
    say(f"{len(found) - len(wrong)} of {len(found)} values of the graph agree", style="bold")
    if wrong:
        print_comparisons(shown, f"values that differ{f', the first {_SHOWN}' if len(wrong) > _SHOWN else ''}")
        say(f"the first node that differs is {layered.nodes[wrong[0].name]}", style="bold red")
    elif not outputs_agree:
        say(
            "with every value as an output nothing is fused and nothing differs: the fault lies in a fusion or a pass; "
            "try --option disabled_passes=NAME"
        )
