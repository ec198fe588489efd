"""`onnxla ops`: which operators of ONNX there are import rules for."""

from itertools import groupby
from typing import Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.output import print_json, say, table

Search = Annotated[str, typer.Argument(help="Only operators whose name holds this.")]


def ops(search: Search = "", as_json: arguments.Json = False) -> None:
    """Print the operators that can be imported, and for which opsets."""
    from onnxla.frontends.onnx import rules
    from onnxla.frontends.onnx.registry import RuleEntry, coverage

    rules.load()

    def key(entry: RuleEntry) -> tuple[str, str]:
        return entry.domain or "ai.onnx", entry.name

    found = [
        (domain, name, [entry.range for entry in entries])
        for (domain, name), entries in groupby(coverage(), key)
        if search.lower() in name.lower()
    ]
    if as_json:
        print_json([{"domain": domain, "operator": name, "opsets": ranges} for domain, name, ranges in found])
        return
    table(("domain", "operator", "opsets"), [(d, n, ", ".join(ranges)) for d, n, ranges in found])
    say(f"{len(found)} operators", style="dim")
