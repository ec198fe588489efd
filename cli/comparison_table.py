"""How far arrays are apart, as a table."""

from onnxla.cli.output import say, table, verdict
from onnxla.debugging.comparison import Comparison


def print_comparisons(comparisons: list[Comparison], title: str) -> None:
    """A table of errors, and why those that do not agree do not."""
    rows = [
        (
            c.name,
            c.type,
            f"{c.max_absolute:.2e}",
            f"{c.max_relative:.2e}",
            f"{c.max_ulp:.0f}",
            f"{c.norm_error:.2e}",
            verdict(c.agrees, "agrees" if c.agrees else "DIFFERS"),
        )
        for c in comparisons
    ]
    table(("output", "type", ">max abs", ">max rel", ">max ulp", ">norm", "verdict"), rows, title)
    for c in comparisons:
        if not c.agrees:
            say(f"{c.name}: {c.cause} (rtol {c.rtol:g}, atol {c.atol:g})", style="red")
