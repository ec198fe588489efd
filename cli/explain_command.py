"""`onnxla explain`: everything that is wrong with a model, without compiling it."""

import typer

from onnxla.cli import arguments
from onnxla.cli.models import request
from onnxla.cli.output import print_json, say

_CANNOT_BE_COMPILED = 3


def explain(
    model: arguments.OnnxModel,
    shape: arguments.ShapeTexts = None,
    dim: arguments.DimTexts = None,
    constant: arguments.ConstantTexts = None,
    as_json: arguments.Json = False,
) -> None:
    """Say what a model is made of, and all reasons why it cannot be compiled. Ends with 3 where there are any."""
    from onnxla.frontends.onnx import report

    wanted = request(model, shape, dim, constant)
    found = report.explain(
        wanted.onnx, shapes=wanted.shapes, dims=wanted.single_dims, constants=wanted.constants, options=wanted.options
    )
    if as_json:
        print_json(
            {
                "model": found.name,
                "compiles": found.compiles,
                "opsets": {domain or "ai.onnx": version for domain, version in found.opsets.items()},
                "operators": found.operators,
                "inputs": [str(spec) for spec in found.signature.inputs],
                "outputs": [str(spec) for spec in found.signature.outputs],
                "problems": [
                    {
                        "kind": p.kind.__name__,
                        "cause": p.cause,
                        "node": None if p.node is None else str(p.node),
                        "details": p.details,
                        "hint": p.hint,
                    }
                    for p in found.problems
                ],
            }
        )
    else:
        say(found)
        say("operators: " + ", ".join(f"{name} {count}" for name, count in found.operators.items()), style="dim")
    if not found.compiles:
        raise typer.Exit(_CANNOT_BE_COMPILED)
