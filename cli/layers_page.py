"""`onnxla validate --layers --html`: every value beside onnxruntime's, as one HTML page that loads nothing.

Names come from models: each reaches the page through `_text`, and the script reads the page, never a name.
"""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onnxla.cli.output import safe
from onnxla.cli.outputs import write_output
from onnxla.debugging.comparison import Comparison
from onnxla.version import __version__

_TEMPLATE = Path(__file__).parent / "layers_page.html"
_HEAD = ("node", "value", "type", "max abs", "max rel", "max ulp", "norm", "verdict")
_SMALLEST, _LARGEST = 1e-8, 1.0
"""Errors from which the bar behind them is empty, and full."""


def write_layers_page(
    path: Path,
    model: str,
    judge: str,
    outputs: Mapping[str, Sequence[Comparison]],
    values: Sequence[Comparison],
    nodes: Mapping[str, str],
    inputs: str,
) -> None:
    """Write the page. `nodes` says which node makes a value. Raises InputError where it cannot be written."""
    differing = [c for c in values if not c.agrees]
    first = f"the first node that differs is {nodes.get(differing[0].name, '?')}" if differing else "no value differs"
    facts = {
        "MODEL": model,
        "ABOUT": f"onnxla {__version__} against {judge}; inputs: {inputs}",
        "SUMMARY": f"{len(values) - len(differing)} of {len(values)} values of the graph agree; {first}",
    }
    page = _TEMPLATE.read_text(encoding="utf-8")
    for name, text in facts.items():
        page = page.replace(f"<!--{name}-->", _text(text))
    sections = [_section(f"Outputs against {against}", rows, nodes) for against, rows in outputs.items()]
    sections.append(_section("Every value, in the order of the nodes", values, nodes))
    write_output(path, page.replace("<!--TABLES-->", "\n".join(sections)))


def _text(text: object) -> str:
    """Text as a page shows it: no markup, no control characters."""
    return html.escape(safe(text))


def _section(title: str, rows: Sequence[Comparison], nodes: Mapping[str, str]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in _HEAD)
    body = "\n".join(_row(c, nodes.get(c.name, "")) for c in rows)
    return f"<h2>{_text(title)}</h2>\n<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _row(c: Comparison, node: str) -> str:
    errors = (f"{c.max_absolute:.2e}", f"{c.max_relative:.2e}", f"{c.max_ulp:.0f}")
    cells: Iterable[str] = (
        *(f"<td>{_text(text)}</td>" for text in (node, c.name, c.type)),
        *(f'<td class="number">{_text(text)}</td>' for text in errors),
        f'<td class="number"><meter value="{_share(c.norm_error):.3f}"></meter> {_text(f"{c.norm_error:.2e}")}</td>',
        f"<td>{_text('agrees' if c.agrees else c.cause)}</td>",
    )
    return f'<tr class="{"agrees" if c.agrees else "differs"}">{"".join(cells)}</tr>'


def _share(error: float) -> float:
    """An error on a logarithmic scale from 0 to 1; what cannot be compared is 1."""
    if not math.isfinite(error):
        return 1.0
    if error <= _SMALLEST:
        return 0.0
    return min(1.0, math.log(error / _SMALLEST) / math.log(_LARGEST / _SMALLEST))
