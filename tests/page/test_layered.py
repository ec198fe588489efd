"""Drawings in layers: boxes apart, lines down, near each other where they belong together."""

import random

import pytest

from onnxla.page.layered import Drawing, draw

BOX = (100.0, 40.0)


def random_graph(seed: int, count: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    return [
        (a, b) for b in range(1, count) for a in {rng.randrange(max(0, b - 6), b) for _ in range(rng.randint(0, 3))}
    ]


def check(drawing: Drawing, sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> None:
    places = list(zip(drawing.corners, sizes, strict=True))
    for k, ((x, y), (w, h)) in enumerate(places):
        assert x >= -1e-6 and y >= -1e-6 and x + w <= drawing.size[0] + 1e-6 and y + h <= drawing.size[1] + 1e-6
        for (a, b), (c, d) in places[k + 1 :]:
            assert x + w <= a + 1e-6 or a + c <= x + 1e-6 or y + h <= b + 1e-6 or b + d <= y + 1e-6, "boxes overlap"
    assert set(drawing.lines) == set(edges)
    for (a, b), points in drawing.lines.items():
        (x, y), (u, v) = points[0], points[-1]
        assert places[a][0][0] <= x <= places[a][0][0] + sizes[a][0] and y == pytest.approx(
            places[a][0][1] + sizes[a][1]
        )
        assert places[b][0][0] <= u <= places[b][0][0] + sizes[b][0] and v == pytest.approx(places[b][0][1])
        assert all(p[1] <= q[1] + 1e-6 for p, q in zip(points, points[1:], strict=False)), "a line leads up"


@pytest.mark.parametrize("seed", range(12))
def test_boxes_stand_apart_and_lines_lead_down(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(1, 60)
    sizes = [(rng.uniform(20, 300), rng.uniform(20, 200)) for _ in range(count)]
    edges = random_graph(seed, count)
    drawing = draw(sizes, edges)
    check(drawing, sizes, edges)
    assert drawing == draw(sizes, edges)


def test_a_chain_is_a_straight_line() -> None:
    drawing = draw([BOX] * 20, [(k, k + 1) for k in range(19)])
    assert len({round(x, 3) for x, _ in drawing.corners}) == 1
    assert drawing.size[0] == BOX[0]


def test_lines_do_not_cross_where_they_need_not() -> None:
    """Two chains whose boxes are given in turns and against each other."""
    edges = [(0, 3), (1, 2), (2, 5), (3, 4)]
    x = [corner[0] for corner in draw([BOX] * 6, edges).corners]
    assert (x[0] < x[1]) == (x[3] < x[2]) == (x[4] < x[5])


def test_lines_past_boxes_have_a_lane_of_their_own() -> None:
    drawing = draw([BOX] * 6, [*((k, k + 1) for k in range(5)), (0, 5)])
    for x, y in drawing.lines[0, 5][1:-1]:
        for left, top in drawing.corners[1:5]:
            assert not (left < x < left + BOX[0] and top < y < top + BOX[1])


def test_very_long_lines_take_no_lanes() -> None:
    count = 80
    edges = [*((k, k + 1) for k in range(count - 1)), (0, count - 1)]
    check(draw([BOX] * count, edges), [BOX] * count, edges)
    assert len(draw([BOX] * count, edges).lines[0, count - 1]) <= 4


def test_nothing_and_circles() -> None:
    assert draw([], []) == Drawing((), {}, (0.0, 0.0))
    with pytest.raises(ValueError, match="circle"):
        draw([BOX] * 2, [(0, 1), (1, 0)])
