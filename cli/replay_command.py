"""`onnxla replay`: a dump of HLO, compiled and run, against the interpreter."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from onnxla.cli import arguments
from onnxla.cli.comparison_table import print_comparisons
from onnxla.cli.feeds import feeds_for, read_inputs
from onnxla.cli.opt_command import read_text, weights_of
from onnxla.cli.output import print_json, progress_bar, say
from onnxla.debugging.comparison import compare
from onnxla.errors import HloError
from onnxla.runtime.tensors import Array

File = Annotated[Path, typer.Argument(help="A file of HLO or StableHLO; `-` reads text from standard input.")]
Weights = Annotated[
    Path | None,
    typer.Option("--weights", help="An .npz file with the constants that the text elides, as computation/name."),
]


def replay(
    file: File,
    input: arguments.Inputs = None,
    weights: Weights = None,
    seed: arguments.Seed = 0,
    rtol: arguments.Rtol = None,
    atol: arguments.Atol = None,
    threads: arguments.Threads = None,
    target: arguments.Target = "cpu",
    dim: arguments.DimTexts = None,
    option: arguments.OptionTexts = None,
    as_json: arguments.Json = False,
) -> None:
    """Compile and run HLO on seeded inputs, and compare with the interpreter. Ends with 1 where they differ.

    It may be a dump of onnxla's or of XLA's, StableHLO, or a function that JAX has exported.
    Constants that the text elides come from --weights, or from the weights beside it as dumps have them; else they are
    random.
    """
    import onnxla
    from onnxla.compiler.hlo_source import source_of_hlo
    from onnxla.config import Limits
    from onnxla.frontends.hlo.model_file import read_hlo
    from onnxla.hlo.types import TensorType

    stored = {} if weights is None else read_inputs([str(weights)]).named
    beside = weights_of(file)
    invented: list[str] = []

    def constant(name: str, type: TensorType) -> Array:
        if weights is not None:
            if name not in stored:
                raise HloError(f"{weights} has no value for the elided constant {name}")
            return stored[name]
        if beside is not None:
            return beside(name, type)
        invented.append(name)
        rng = np.random.default_rng([seed, 1, len(invented)])
        return rng.uniform(-1, 1, type.shape).astype(type.element.dtype)

    settings, limits = arguments.parse_options(option), Limits.from_environment()
    program = read_hlo(f"{read_text(file)}\n" if str(file) == "-" else file, limits, constant)
    dims = {name: size for name, size in arguments.parse_dims(dim).items() if isinstance(size, int)}
    module = source_of_hlo(program, settings, limits, {}).load({}, dims, {}).module
    with progress_bar(f"compiling {file.name}") as progress:
        compiled = onnxla.compile(module, target=target, options=settings, num_threads=threads, progress=progress)
    feeds = feeds_for(compiled.get_inputs(), compiled.get_outputs(), read_inputs(input), seed)
    results = compiled.run(None, feeds.arrays)
    expected = module.entry.evaluate(*(feeds.arrays[t.name] for t in compiled.get_inputs()))
    found = [
        compare(tensor.name, ours, np.asarray(theirs), rtol, atol)
        for tensor, ours, theirs in zip(
            compiled.get_outputs(), results, expected if isinstance(expected, tuple) else (expected,), strict=True
        )
    ]
    agrees = all(c.agrees for c in found)
    if as_json:
        print_json({"agrees": agrees, "random": feeds.random, "random_constants": invented, "outputs": found})
    else:
        if feeds.random:
            say(f"random inputs (seed {seed}): {', '.join(feeds.random)}", style="dim")
        if invented:
            say(f"random constants: {len(invented)} that the text elides", style="dim")
        print_comparisons(found, "outputs against the interpreter")
    if not agrees:
        raise typer.Exit(1)
