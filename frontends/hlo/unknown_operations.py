"""What is said of an operation of StableHLO's text that nothing imports, and the way out."""

from difflib import get_close_matches

from onnxla.errors import Problem, UnsupportedOpError
from onnxla.frontends.hlo.operation_view import OperationView
from onnxla.frontends.hlo.registry import coverage

_SPELLING_CUTOFF, _LONGEST_NAME = 0.8, 64
_BETWEEN_DEVICES = (
    "after_all all_gather all_reduce all_to_all collective_broadcast collective_permute create_token infeed outfeed "
    "recv reduce_scatter send"
).split()


def unknown_operation(view: OperationView) -> Problem:
    """The problem that an operation has no import rule."""
    name = view.operation.name
    return Problem(
        UnsupportedOpError, f"the operation {name} is not supported", view.source, view.place, _way_out(name)
    )


def _way_out(full: str) -> str:
    dialect, _, name = full.partition(".")
    if dialect in ("stablehlo", "mhlo") and name in _BETWEEN_DEVICES:
        return "write the program for one device, without tokens"
    home = "stablehlo." if dialect == "mhlo" else f"{dialect}."
    own = [known.removeprefix(home) for known in coverage() if known.startswith(home)]
    close = get_close_matches(name[:_LONGEST_NAME], own, 1, _SPELLING_CUTOFF)
    meant = f"is {dialect}.{close[0]} meant? " if close else ""
    if dialect == "chlo":
        return meant + "jax.export writes it out in operations of StableHLO"
    return meant + "write it in operations of StableHLO: onnxla ops --stablehlo lists those that there are rules for"
