"""Draws the last entries of a history: `python -m tests.bench.picture FILE --speed OUT.svg --memory OUT.svg`.

Speed: a bar is onnxruntime's time over ours, the longest first; the line stands at 1, where both are equally fast, and
a tick where another runtime does. Memory: a bar is our peak resident set over onnxruntime's, the shortest first, and
its dark part the arena. Models in f32 come first, then those in int8 and in f16. Nothing is left out: a model that
fails has its reason in place of a bar.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tests.bench.history import Entry, read

_LEFT, _BAR, _STEP, _TOP, _GAP = 170, 14, 20, 34, 24
"""Where bars begin; their height; from one to the next; room for the title; for the heading of a group."""
_WIDEST, _SCALE, _TEXT = 700, 150, 260
"""Pixels of the longest bar at most; of a ratio of 1 at most; for what stands behind a bar."""
_GOOD, _BAD, _DARK, _TICK = "#2a78b8", "#c8783c", "#17456b", "#444444"


@dataclass(frozen=True)
class Bar:
    """One model."""

    name: str
    group: str
    length: float
    """As a ratio."""
    text: str
    good: bool = True
    dark: float = 0.0
    """The part of the length that is dark."""
    ticks: Sequence[float] = ()


def speed_bars(entry: Entry) -> Iterator[Bar]:
    """A bar for each model, the largest ratio to onnxruntime first."""
    for name, row in sorted(entry.models.items(), key=lambda item: -item[1].get("ratio", {}).get("onnxruntime", 0.0)):
        if "error" in row:
            yield _failed(name, row)
            continue
        ratio = row["ratio"]["onnxruntime"]
        ticks = [ratio / other for runtime, other in row["ratio"].items() if runtime != "onnxruntime"]
        note = " (results differ)" if "onnxruntime" in row["differing"] else ""
        yield Bar(name, row["arithmetic"], ratio, f"{ratio:.2f}{note}", ratio >= 1, ticks=ticks)


def memory_bars(entry: Entry) -> Iterator[Bar]:
    """A bar for each model, the smallest ratio to onnxruntime first."""

    def part(row: dict[str, Any]) -> float:
        return math.inf if "error" in row else float(row["onnxla"] / row["onnxruntime"])

    for name, row in sorted(entry.models.items(), key=lambda item: part(item[1])):
        if "error" in row:
            yield _failed(name, row)
            continue
        ratio = part(row)
        text = f"{ratio:.2f}: {row['onnxla'] / 1e6:.0f} MB, arena {row['arena'] / 1e6:.1f} MB"
        yield Bar(name, row["arithmetic"], ratio, text, ratio <= 1, min(1.0, row["arena"] / row["onnxla"]))


def _failed(name: str, row: dict[str, Any]) -> Bar:
    return Bar(name, row["arithmetic"], 0.0, row["error"])


def mean(entry: Entry) -> float:
    """The geometric mean of the ratios to onnxruntime's time."""
    logarithms = [math.log(row["ratio"]["onnxruntime"]) for row in entry.models.values() if "ratio" in row]
    return math.exp(sum(logarithms) / len(logarithms))


def picture(bars: Sequence[Bar], title: str, footer: str) -> str:
    """An SVG of the bars in their groups, with a line at 1."""
    groups = [(name, [bar for bar in bars if bar.group == name]) for name in ("f32", "int8", "f16")]
    groups = [(name, rows) for name, rows in groups if rows]
    longest = max(1.0, *(length for bar in bars for length in (bar.length, *bar.ticks)))
    scale = min(_SCALE, _WIDEST / longest)
    width = _LEFT + int(scale * longest) + _TEXT
    end = _TOP + _STEP * len(bars) + _GAP * len(groups)
    one = _LEFT + scale
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{end + 24}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{end + 24}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(title)}</text>',
        *_drawn(groups, scale),
        f'<line x1="{one:.1f}" y1="{_TOP - 4}" x2="{one:.1f}" y2="{end}" stroke="black" stroke-dasharray="3 3"/>',
        f'<text x="{_LEFT}" y="{end + 14}">{escape(footer)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _drawn(groups: Sequence[tuple[str, Sequence[Bar]]], scale: float) -> Iterator[str]:
    y = _TOP
    for heading, bars in groups:
        yield f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end" font-style="italic">{heading}</text>'
        y += _GAP
        for bar in bars:
            width = bar.length * scale
            colour = _GOOD if bar.good else _BAD
            yield f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(bar.name)}</text>'
            yield f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>'
            if bar.dark:
                yield f'<rect x="{_LEFT}" y="{y}" width="{width * bar.dark:.1f}" height="{_BAR}" fill="{_DARK}"/>'
            for tick in bar.ticks:
                x, height = _LEFT + tick * scale, _BAR + 4
                yield f'<rect x="{x - 1:.1f}" y="{y - 2}" width="2" height="{height}" fill="{_TICK}"/>'
            behind = _LEFT + max(1.0, bar.length, *bar.ticks) * scale + 5
            yield f'<text x="{behind:.1f}" y="{y + 11}">{escape(bar.text)}</text>'
            y += _STEP


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("history", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--speed", type=Path)
    parser.add_argument("--memory", type=Path)
    arguments = parser.parse_args()
    history = read(arguments.history)
    threads = f"{arguments.threads} thread{'s' if arguments.threads > 1 else ''}"
    if arguments.speed is not None:
        entry = history.last("speed", arguments.threads)
        if entry is None:
            raise SystemExit(f"{arguments.history} has no times on {threads}")
        others = [f"{name} {version}" for name, version in entry.versions.items() if name != "onnxruntime"]
        footer = f"geometric mean {mean(entry):.2f}; the line is onnxruntime"
        footer += "".join(f", a tick {other}" for other in others)
        title = f"onnxruntime's time / ours, {history.cpu}, {threads}, {entry.date}"
        arguments.speed.write_text(picture(list(speed_bars(entry)), title, footer))
    if arguments.memory is not None:
        entry = history.last("memory", arguments.threads)
        if entry is None:
            raise SystemExit(f"{arguments.history} has no memory on {threads}")
        title = f"our peak resident set / onnxruntime's, {threads}, {entry.date}"
        footer = "the dark part is the arena; the line is onnxruntime"
        arguments.memory.write_text(picture(list(memory_bars(entry)), title, footer))


if __name__ == "__main__":
    main()
