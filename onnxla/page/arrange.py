"""Where everything stands: boxes with boxes inside, twice over: fusions closed, and open."""

from dataclasses import dataclass, field
from typing import Any

from onnxla.page.graph import Box, Group
from onnxla.page.layered import draw

_PADDING = 10.0
_HEADER = 40.0
_GROUP_HEADER = 18.0
_CHARACTER = 6.7
_WIDEST, _NARROWEST = 250.0, 96.0


@dataclass
class Picture:
    """Places by number of the box, lines, and the size of the whole."""

    width: float = 0.0
    height: float = 0.0
    boxes: list[list[int]] = field(default_factory=list)
    """[number, x, y, width, height, 1 where its inside is drawn], outer boxes first."""
    lines: list[list[Any]] = field(default_factory=list)
    """[from, to, [x, y, x, y, ...]]"""
    titles: list[list[Any]] = field(default_factory=list)
    """[x, y, title] of the parts of loops and branches."""


def arrange(group: Group, *, open_fusions: bool) -> Picture:
    """The picture of a group. Loops and branches are always open."""
    sizes, insides = [], []
    for box in group.boxes:
        inside = _insides(box, open_fusions)
        insides.append(inside)
        sizes.append(_size(box, inside))
    number = {box: k for k, box in enumerate(group.boxes)}
    edges = [(number[a], number[b]) for a, b in group.lines]
    gap = (16.0, 18.0) if group.boxes and group.boxes[0].inner else (26.0, 34.0)
    drawing = draw(sizes, edges, gap)
    picture = Picture(*drawing.size)
    for (a, b), points in sorted(drawing.lines.items()):
        flat = [round(c) for point in points for c in point]
        picture.lines.append([group.boxes[a].number, group.boxes[b].number, flat])
    for box, (x, y), (width, height), inside in zip(group.boxes, drawing.corners, sizes, insides, strict=True):
        picture.boxes.append([box.number, round(x), round(y), round(width), round(height), int(bool(inside))])
        left = x + _PADDING
        for title, part in inside:
            top = y + _HEADER + (_GROUP_HEADER if title else 0.0)
            if title:
                picture.titles.append([round(left), round(top) - 6, title])
            _add(picture, part, left, top)
            left += part.width + 2 * _PADDING
    return picture


def _insides(box: Box, open_fusions: bool) -> list[tuple[str, Picture]]:
    if not (open_fusions or box.is_control) or not any(group.boxes for group in box.groups):
        return []
    if box.category != "control" and len(box.groups[0].boxes) < 2:
        return []
    return [(group.title, arrange(group, open_fusions=open_fusions)) for group in box.groups]


def _size(box: Box, inside: list[tuple[str, Picture]]) -> tuple[float, float]:
    longest = max(len(box.title) * 1.26, len(box.subtitle))
    width = min(max(longest * _CHARACTER + 22, _NARROWEST), _WIDEST)
    if not inside:
        return (width, 26.0 if box.inner else 44.0)
    headers = _GROUP_HEADER if any(title for title, _ in inside) else 0.0
    inner_width = sum(part.width for _, part in inside) + 2 * _PADDING * len(inside)
    return (max(width, inner_width), _HEADER + headers + max(part.height for _, part in inside) + _PADDING)


def _add(picture: Picture, part: Picture, x: float, y: float) -> None:
    """Put a picture into another one, its corner at (x, y)."""
    dx, dy = round(x), round(y)
    picture.boxes += [[n, a + dx, b + dy, w, h, inside] for n, a, b, w, h, inside in part.boxes]
    picture.lines += [[a, b, [c + (dy if k % 2 else dx) for k, c in enumerate(points)]] for a, b, points in part.lines]
    picture.titles += [[a + dx, b + dy, title] for a, b, title in part.titles]
