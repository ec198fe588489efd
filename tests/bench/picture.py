"""Draws the figures of `table.py --json` as sorted bars: `python -m tests.bench.picture FIGURES.json OUT.svg`.

A bar is onnxruntime's time over ours; the line stands at 1, where both are equally fast. Models in f32 come first, then
those that compute in int8 or f16, as their names say. Nothing is left out.
"""

import argparse
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

_LEFT, _BAR, _STEP, _SCALE, _TOP = 150, 14, 20, 150, 34
_GAP = 24
"""Between the groups: the headline of the second."""


def picture(ratios: dict[str, float], title: str) -> str:
    """An SVG with one bar for each model, in each group the largest ratio first."""
    narrow = {name: ratio for name, ratio in ratios.items() if re.search(r"int8|f16|fp16|bf16", name)}
    wide = {name: ratio for name, ratio in ratios.items() if name not in narrow}
    mean = math.exp(sum(math.log(r) for r in ratios.values()) / len(ratios))
    groups = [(heading, rows) for heading, rows in (("f32", wide), ("int8 and f16", narrow)) if rows]
    width = _LEFT + int(_SCALE * max(ratios.values())) + 60
    height = _TOP + _STEP * len(ratios) + _GAP * len(groups) + 24
    end = height - 24
    one = _LEFT + _SCALE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(title)}</text>',
        *_bars(groups),
        f'<line x1="{one}" y1="{_TOP - 4}" x2="{one}" y2="{end}" stroke="black" stroke-dasharray="3 3"/>',
        f'<text x="{_LEFT}" y="{end + 14}">geometric mean {mean:.2f}; the line is onnxruntime</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _bars(groups: list[tuple[str, dict[str, float]]]) -> Iterator[str]:
    y = _TOP
    for heading, ratios in groups:
        yield f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end" font-style="italic">{heading}</text>'
        y += _GAP
        for name, ratio in sorted(ratios.items(), key=lambda row: -row[1]):
            colour = "#2a78b8" if ratio >= 1 else "#c8783c"
            yield f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(name)}</text>'
            yield f'<rect x="{_LEFT}" y="{y}" width="{ratio * _SCALE:.1f}" height="{_BAR}" fill="{colour}"/>'
            yield f'<text x="{_LEFT + ratio * _SCALE + 5:.1f}" y="{y + 11}">{ratio:.2f}</text>'
            y += _STEP


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figures", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--title", default="onnxruntime's time / ours")
    arguments = parser.parse_args()
    figures = json.loads(arguments.figures.read_text())
    ratios = {name: found["ratio"] for name, found in figures.items() if "ratio" in found}
    arguments.picture.write_text(picture(ratios, arguments.title))


if __name__ == "__main__":
    main()
