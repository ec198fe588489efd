"""What is said of an operator that nothing imports: neither a rule nor a function, of the model or of the standard."""

from difflib import get_close_matches
from functools import cache

import onnx.defs

from onnxla.errors import Problem, SourceNode, UnsupportedOpError
from onnxla.frontends.onnx.operator_names import qualified_name
from onnxla.frontends.onnx.registry import NoRule, coverage, ranges

_IN_ONNXRUNTIME = 'leave it to onnxruntime, fallback="onnxruntime" or --fallback onnxruntime'
_DOMAINS_OF_ONNXRUNTIME = ("com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc")
_SPELLING_CUTOFF, _LONGEST_NAME = 0.75, 64


def no_rule_problem(
    error: NoRule, op_type: str, domain: str, node: SourceNode, details: tuple[tuple[str, str], ...]
) -> Problem:
    """The problem that a node has no import rule, as `error` says, and the way out."""
    return Problem(UnsupportedOpError, str(error), node, details, _way_out(op_type, domain, node.opset))


@cache
def _way_out(op_type: str, domain: str, opset: int) -> str:
    ways = []
    covered = ranges(op_type, domain)
    if covered:
        ways.append(f"export the model with opset {' or '.join(covered)} of {domain or 'ai.onnx'}")
    elif meant := _meant(op_type, domain):
        ways.append(f"is {meant} meant?")
    if _may_run_in_onnxruntime(op_type, domain, opset):
        ways.append(_IN_ONNXRUNTIME)
    if not covered:
        ways.append(f"define {qualified_name(op_type, domain)} as a function in the model")
    if len(ways) == 1 and not covered:
        ways.append("export it in operators of ONNX")
    question = [ways.pop(0)] if ways[0].endswith("?") else []
    return " ".join([*question, ", or ".join(ways)])


def _meant(op_type: str, domain: str) -> str:
    """An operator that may have been meant: of the same name in another domain, or of a similar name in this one."""
    known = _known_operators()
    elsewhere = [d for d, names in known.items() if op_type in names and d != domain]
    if elsewhere:
        return qualified_name(op_type, elsewhere[0]) + ("" if elsewhere[0] else " of ai.onnx")
    close = get_close_matches(op_type[:_LONGEST_NAME], known.get(domain, ()), 1, _SPELLING_CUTOFF)
    return qualified_name(close[0], domain) if close else ""


@cache
def _known_operators() -> dict[str, tuple[str, ...]]:
    """The names of operators with a rule, by domain, the standard's own first."""
    found: dict[str, dict[str, None]] = {}
    for entry in coverage():
        found.setdefault(entry.domain, {})[entry.name] = None
    return {domain: tuple(names) for domain, names in sorted(found.items())}


def _may_run_in_onnxruntime(op_type: str, domain: str, opset: int) -> bool:
    """Whether onnxruntime may have a kernel: for what is standard at this opset, and for its own operators."""
    if domain in _DOMAINS_OF_ONNXRUNTIME:
        return True
    try:
        return not onnx.defs.get_schema(op_type, opset, domain).deprecated
    except onnx.defs.SchemaError:
        return False
