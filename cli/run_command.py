"""`onnxla run`: an artifact or a model on inputs from files, or on random ones."""

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation, Cut
from onnxla.cli.feeds import write_outputs
from onnxla.cli.models import clusters_of, load_and_feed, request
from onnxla.cli.output import count, duration, print_json, say
from onnxla.debugging.parts import flat_outputs

Output = Annotated[Path | None, typer.Option("--output", "-o", help="An .npz file that receives the outputs.")]
WithProfile = Annotated[bool, typer.Option("--profile", help="Print the time of each step.")]


def run(
    model: arguments.Model,
    *,
    input: arguments.Inputs = None,
    output: Output = None,
    seed: arguments.Seed = 0,
    profile: WithProfile = False,
    threads: arguments.Threads = None,
    how: Compilation,
    fallback: arguments.Fallback = None,
    cut: Cut,
    as_json: arguments.Json = False,
) -> None:
    """Run a model on given or seeded random inputs."""
    wanted = request(model, how, threads=threads, cut=cut, fallback=fallback)
    loaded = load_and_feed(wanted, input, seed)
    compiled, feeds = loaded.model, loaded.feeds
    start = time.perf_counter()
    values = loaded.run()
    seconds = time.perf_counter() - start
    outputs = flat_outputs(values)
    if output is not None:
        write_outputs(output, outputs)
    steps = compiled.profile(feeds.arrays) if profile else None
    clusters = clusters_of(compiled)
    if as_json:
        rows = None if steps is None else [{"seconds": row.seconds, **vars(row.step)} for row in steps.rows]
        parts = {} if clusters is None else {"clusters": clusters.clusters}
        print_json({"seconds": seconds, "random": feeds.random, "outputs": values, "profile": rows, **parts})
        return
    if feeds.random:
        say(f"random inputs (seed {seed}): {', '.join(feeds.random)}", style="dim")
    for name, array in outputs.items():
        say(f"{name} {array.dtype}[{','.join(map(str, array.shape))}]", style="bold")
        say(np.array2string(array, threshold=40, edgeitems=4, precision=6, suppress_small=True, max_line_width=100))
    say(f"{duration(seconds)} with at most {count(compiled.num_threads, 'thread')}", style="dim")
    if output is not None:
        say(f"outputs are in {output}", style="dim")
    if clusters is not None:
        say(clusters, style="dim")
    if steps is not None:
        say(steps)
