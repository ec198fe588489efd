"""The ranges of factors that a lower precision rounds, as a table, with the nodes to keep in f32 by name."""

import shlex
from typing import TYPE_CHECKING, Any

from onnxla.cli.output import say, table, verdict

if TYPE_CHECKING:
    from onnxla.debugging.ranges import Ranges

TOLERANCES = {"fp16": 1e-2, "tf32": 1e-2, "bf16": 5e-2}
"""How far outputs may be apart, relative and absolute, where no tolerance is given: as for outputs of that type."""
_MOST = 20
"""Most rows that are shown."""


def ranges_document(ranges: "Ranges") -> dict[str, Any]:
    """As JSON."""
    rows = [{**vars(f), "verdict": f.judged(ranges.precision)} for f in ranges.factors]
    return {
        "precision": ranges.precision,
        "largest": ranges.end,
        "products": rows,
        "unwatched": ranges.unwatched,
        "keep_f32": ranges.overflowing,
    }


def print_ranges(ranges: "Ranges") -> None:
    """Those that overflow or come near it, the others in number; then what to keep in f32."""
    precision = ranges.precision
    order = {"overflows": 0, "near": 1, "fits": 2}
    worst = sorted(ranges.factors, key=lambda f: (order[f.judged(precision)], -max(f.largest)))
    shown = worst[:_MOST]
    rows = [
        (
            f.place,
            f"{f.largest[0]:.3g}",
            f"{f.largest[1]:.3g}",
            str(f.overflows),
            f"{f.vanishing:.1%}",
            verdict(not f.overflows, f.judged(precision).upper() if f.overflows else f.judged(precision)),
        )
        for f in shown
    ]
    rest = f", the {_MOST} largest of {len(worst)}" if len(worst) > _MOST else ""
    title = f"factors of products in {precision}, which ends at {ranges.end:.5g}, with these inputs{rest}"
    table(("node", ">first", ">second", ">overflow", ">become 0", "verdict"), rows, title)
    if ranges.unwatched:
        say(f"inside loops and branches, and not watched: {', '.join(ranges.unwatched)}", style="dim")
    if ranges.overflowing:
        options = " ".join(f"--keep-f32 {shlex.quote(name)}" for name in ranges.overflowing)
        say(f"keep what overflows in f32: {options}", style="bold red")
    elif precision == "fp16":
        say("nothing overflows with these inputs; try others that are as large as yours may be", style="dim")
