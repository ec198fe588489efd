"""Draw a directed acyclic graph in layers, top to bottom: where boxes stand and how lines run between them.

After Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures" (1981): layers by
longest path, boxes of lines that pass through a layer, orders by barycentres, places by least squares. Lines that leave
one box share their way as long as they can. The same graph gives the same drawing.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]
Edge = tuple[int, int]

_SWEEPS = 8
_LONGEST_ROUTE = 30
"""Layers that a line may cross and still have a lane of its own; longer ones are drawn straight."""
_LANE_WIDTH = 14.0
_LANE_WEIGHT = 4.0
"""How much more a lane wants to be straight than a line between boxes."""


@dataclass(frozen=True)
class Drawing:
    """Left upper corners of the boxes; lines by edge, as points from one box down to the other; the size of all."""

    corners: tuple[Point, ...]
    lines: dict[Edge, tuple[Point, ...]]
    size: Point


def draw(sizes: Sequence[Point], edges: Sequence[Edge], gap: Point = (24.0, 34.0)) -> Drawing:
    """Place boxes of these sizes (width, height) so that all edges (from, to) lead down; `gap` is between boxes.

    Raises ValueError for edges in a circle.
    """
    if not sizes:
        return Drawing((), {}, (0.0, 0.0))
    edges = list(dict.fromkeys(e for e in edges if e[0] != e[1]))
    layers = _layers(len(sizes), edges)
    graph = _Graph(sizes, edges, layers)
    graph.order()
    return graph.place(gap)


def _layers(count: int, edges: Sequence[Edge]) -> list[int]:
    """A layer for each box: below all that it reads, and near what reads it where it reads little."""
    below: dict[int, list[int]] = defaultdict(list)
    above: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        below[a].append(b)
        above[b].append(a)
    waiting = [len(above[k]) for k in range(count)]
    ready = [k for k in range(count) if not waiting[k]]
    order, layer = [], [0] * count
    for k in ready:  # grows while it is walked
        order.append(k)
        for b in below[k]:
            layer[b] = max(layer[b], layer[k] + 1)
            waiting[b] -= 1
            if not waiting[b]:
                ready.append(b)
    if len(order) < count:
        raise ValueError("the graph has a circle")
    for k in reversed(order):
        if below[k] and len(above[k]) <= len(below[k]):
            layer[k] = max(layer[k], min(layer[b] for b in below[k]) - 1)
    first = min(layer)
    return [n - first for n in layer]


class _Graph:
    """Boxes and, behind them, the places where lines cross a layer."""

    def __init__(self, sizes: Sequence[Point], edges: Sequence[Edge], layers: Sequence[int]) -> None:
        self.boxes = len(sizes)
        self.sizes = list(sizes)
        self.layer = list(layers)
        self.above: dict[int, list[int]] = defaultdict(list)
        self.below: dict[int, list[int]] = defaultdict(list)
        self.routes: dict[Edge, list[int]] = {}
        crossings: dict[tuple[int, int], int] = {}
        for a, b in sorted(edges):
            if layers[b] - layers[a] > _LONGEST_ROUTE:
                self.routes[a, b] = [a, b]
                continue
            route = [a]
            for level in range(layers[a] + 1, layers[b]):
                if (a, level) not in crossings:
                    crossings[a, level] = len(self.sizes)
                    self.sizes.append((_LANE_WIDTH, 0.0))
                    self.layer.append(level)
                route.append(crossings[a, level])
            route.append(b)
            self.routes[a, b] = route
            for upper, lower in zip(route, route[1:], strict=False):
                if upper not in self.above[lower]:
                    self.above[lower].append(upper)
                    self.below[upper].append(lower)
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        for k in range(len(self.sizes)):
            self.rows[self.layer[k]].append(k)
        self.place_in_row = {k: n for row in self.rows for n, k in enumerate(row)}

    # Order within layers

    def order(self) -> None:
        """Fewer lines cross: each layer is sorted by the mean place of its neighbours, down and up in turns."""
        best, fewest = [list(row) for row in self.rows], self.crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                self.sort(row, self.above if down else self.below)
            count = self.crossings()
            if count < fewest:
                best, fewest = [list(row) for row in self.rows], count
        self.rows = best

    def sort(self, row: list[int], neighbours: dict[int, list[int]]) -> None:
        if len(row) < 2:
            return
        place = self.place_in_row
        mean = {
            k: sum(place[n] for n in neighbours[k]) / len(neighbours[k]) if neighbours[k] else place[k] for k in row
        }
        row.sort(key=lambda k: (mean[k], place[k]))
        place |= {k: n for n, k in enumerate(row)}

    def crossings(self) -> int:
        """Pairs of lines that cross between neighbouring layers."""
        total = 0
        for upper in self.rows[:-1]:
            place = {k: n for n, k in enumerate(self.rows[self.layer[upper[0]] + 1])} if upper else {}
            seen: list[int] = []
            for k in upper:
                ends = sorted(place[b] for b in self.below[k])
                total += sum(sum(1 for s in seen if s > end) for end in ends)
                seen += ends
        return total

    # Places

    def place(self, gap: Point) -> Drawing:
        """Boxes near the middle of their neighbours, lines as straight as the order allows."""
        centre = [0.0] * len(self.sizes)
        for row in self.rows:
            x = -(sum(self.sizes[k][0] for k in row) + gap[0] * (len(row) - 1)) / 2
            for k in row:
                centre[k] = x + self.sizes[k][0] / 2
                x += self.sizes[k][0] + gap[0]
        for sweep in range(2 * _SWEEPS):
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                self.settle(row, centre, gap[0])
        left = min(c - s[0] / 2 for c, s in zip(centre, self.sizes, strict=True))
        tops, y = [], 0.0
        heights = []
        for row in self.rows:
            heights.append(max((self.sizes[k][1] for k in row), default=0.0))
            tops.append(y)
            y += heights[-1] + gap[1]
        middle = [tops[n] + heights[n] / 2 for n in self.layer]
        corners = tuple(
            (centre[k] - left - self.sizes[k][0] / 2, middle[k] - self.sizes[k][1] / 2) for k in range(self.boxes)
        )
        lines = {}
        for (a, b), route in self.routes.items():
            points = [(centre[a] - left, middle[a] + self.sizes[a][1] / 2)]
            for k in route[:-1]:  # straight down beside what is taller in the layer, then over to the next
                x, n = centre[k] - left, self.layer[k]
                points += [(x, tops[n])] * (k != a) + [(x, tops[n] + heights[n])]
            x = centre[b] - left
            points += [(x, tops[self.layer[b]]), (x, middle[b] - self.sizes[b][1] / 2)]
            lines[a, b] = tuple(dict.fromkeys(points))
        width = max(c + s[0] / 2 for c, s in zip(centre, self.sizes, strict=True)) - left
        return Drawing(corners, lines, (width, y - gap[1]))

    def settle(self, row: list[int], centre: list[float], gap: float) -> None:
        """The places nearest to the means of the neighbours, in the least squares' sense, in this order and apart."""
        offsets, x = [], 0.0
        for n, k in enumerate(row):
            if n:
                x += (self.sizes[row[n - 1]][0] + self.sizes[k][0]) / 2 + gap
            offsets.append(x)
        wishes = []
        for k, offset in zip(row, offsets, strict=True):
            wish, total = 0.05 * centre[k], 0.05
            for n in (*self.above[k], *self.below[k]):
                weight = _LANE_WEIGHT if n >= self.boxes and k >= self.boxes else 1.0
                wish, total = wish + weight * centre[n], total + weight
            wishes.append((wish / total - offset, total))
        for k, offset, shift in zip(row, offsets, _isotonic(wishes), strict=True):
            centre[k] = shift + offset


def _isotonic(wishes: Sequence[tuple[float, float]]) -> list[float]:
    """The non-decreasing numbers nearest to these (value, weight): pool adjacent violators."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in wishes:
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (v, w, n), (u, z, m) = pools.pop(), pools.pop()
            pools.append(((v * w + u * z) / (w + z), w + z, n + m))
    return [value for value, _, count in pools for _ in range(count)]
