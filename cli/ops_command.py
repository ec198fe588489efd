"""`onnxla ops`: which operators of ONNX, or operations of TensorFlow, StableHLO or HLO, there are import rules for."""

from itertools import groupby
from typing import Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.output import count, print_json, say, table

TensorFlow = Annotated[bool, typer.Option("--tensorflow", help="TensorFlow's operations instead of ONNX's.")]
StableHlo = Annotated[bool, typer.Option("--stablehlo", help="StableHLO's operations instead of ONNX's.")]
Hlo = Annotated[bool, typer.Option("--hlo", help="The operations of XLA's HLO text instead of ONNX's.")]
Search = Annotated[str, typer.Argument(help="Only operators whose name holds this.")]


def ops(
    search: Search = "",
    tensorflow: TensorFlow = False,
    stablehlo: StableHlo = False,
    hlo: Hlo = False,
    as_json: arguments.Json = False,
) -> None:
    """Print the operators that can be imported, and for which opsets."""
    if tensorflow:
        _print_tensorflow(search, as_json)
        return
    if stablehlo:
        _print_stablehlo(search, as_json)
        return
    if hlo:
        _print_hlo(search, as_json)
        return
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
    say(count(len(found), "operator"), style="dim")


def _print_tensorflow(search: str, as_json: bool) -> None:
    """TensorFlow's operations have no versions."""
    from onnxla.frontends.tensorflow import rules
    from onnxla.frontends.tensorflow.registry import coverage

    rules.load()
    names = [e.name for e in coverage() if search.lower() in e.name.lower() and not e.name.startswith("onnxla.")]
    _print_names(names, as_json)


def _print_stablehlo(search: str, as_json: bool) -> None:
    """Those of CHLO and of functions among them."""
    from onnxla.frontends.hlo import rules  # noqa: F401  registers them
    from onnxla.frontends.hlo.registry import coverage

    _print_names([name for name in coverage() if search.lower() in name.lower()], as_json)


def _print_hlo(search: str, as_json: bool) -> None:
    from onnxla.hlo.unknown_opcodes import known_opcodes

    _print_names([name for name in known_opcodes() if search.lower() in name.lower()], as_json)


def _print_names(names: list[str], as_json: bool) -> None:
    if as_json:
        print_json(names)
        return
    table(("operation",), [(name,) for name in names])
    say(count(len(names), "operation"), style="dim")
