"""Profiles: rounds and spans as native code writes them, and as Perfetto reads them."""

import json

import numpy as np
import pytest

import onnxla
from onnxla.runtime.profiler import Profile, ProfileRow, add_time, new_profile, profile_of, span_count
from onnxla.runtime.program import Step
from onnxla.runtime.trace import chrome_trace
from tests.page.models import recurrent_model

STEPS = (
    Step("a", "fusion", "/a (Exp)", 100, 50, 0, "k0", 4),
    Step("l", "while", ""),
    Step("b", "dot", "", 8, 0, 1, "k1", 1),
)
X = {"x": np.ones((12, 2, 6), np.float32)}


def test_rounds_add_up() -> None:
    array = new_profile(3)
    array[0] = 1000
    for begin, end, number in ((1000, 1500, 0), (1600, 1700, 2), (1700, 1900, 2), (1500, 2000, 1)):
        add_time(array, number, begin, end)
    profile = profile_of(STEPS, array)
    assert [(row.seconds, row.rounds) for row in profile.rows] == [(5e-7, 1), (5e-7, 1), (3e-7, 2)]
    assert profile.seconds == pytest.approx(1e-6)
    assert [(outer.step.name, [r.step.name for r in inner]) for outer, inner in profile.grouped()] == [
        ("a", []),
        ("l", ["b"]),
    ]
    assert profile.rows[0].gigaflops == pytest.approx(0.1)
    assert profile.rows[2].gigabytes_per_second == pytest.approx(2 * 8 / 300)
    assert "b x2" in str(profile) and "0.001 ms in 2 steps" in str(profile)
    assert span_count(profile) == 1 + 4 + 1 + 2
    assert profile.spans == () and profile.lost == 0


def test_spans_beyond_the_room_are_counted() -> None:
    array = new_profile(3, 2)
    array[0] = 100
    for k in range(5):
        add_time(array, 2, 100 + 10 * k, 105 + 10 * k)
    profile = profile_of(STEPS, array)
    assert [(s.step, s.thread) for s in profile.spans] == [(2, 0), (2, 0)] and profile.lost == 3
    assert profile.spans[1].begin == pytest.approx(1e-8) and profile.spans[1].end == pytest.approx(1.5e-8)
    assert profile.rows[2].rounds == 5


def test_a_loop_is_seen_inside_and_its_tasks_are_traced() -> None:
    model = onnxla.compile(recurrent_model(), options={"cache_dir": None}, num_threads=2)
    expected = model.run(None, X)
    profile = model.profile(X, runs=2, spans=True, overhead=True)
    assert model.run(None, X)[0] == expected[0]
    assert profile.overhead is not None and profile.lost == 0
    rounds = {row.step.op: row.rounds for row in profile.rows if row.step.depth}
    assert rounds["compare"] == 13 and rounds["add"] == 12
    assert {row.rounds for row in profile.rows if row.step.op == "conditional"} == {1}
    cases = [row.rounds for row in profile.rows if "/Exp" in row.step.source or "/Tanh" in row.step.source]
    assert sorted(cases) == [0, 1], "one case of the branch ran"
    assert len(profile.spans) == span_count(profile)
    for number, row in enumerate(profile.rows):
        own = [span for span in profile.spans if span.step == number]
        assert sum(span.thread == 0 for span in own) == row.rounds
        assert sum(span.end - span.begin for span in own if span.thread == 0) == pytest.approx(row.seconds, abs=1e-9)


def test_a_trace_is_what_perfetto_reads() -> None:
    array = new_profile(3, 8)
    array[0] = 1000
    add_time(array, 0, 1000, 3000)
    array[3] += 1
    array[-28:-24] = (0, 777, 1200, 2800)  # a task on some thread
    trace = json.loads(json.dumps(chrome_trace(profile_of(STEPS, array), "m</script>.onnx"), allow_nan=False))
    names = {(e["name"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
    assert names == {
        ("process_name", 0): "m</script>.onnx",
        ("thread_name", 0): "steps",
        ("thread_name", 1): "thread 1",
    }
    step, task = (e for e in trace["traceEvents"] if e["ph"] == "X")
    assert (step["name"], step["ts"], step["dur"], step["tid"]) == ("a", 0.0, pytest.approx(2.0), 0)
    assert step["args"]["node"] == "/a (Exp)" and step["args"]["bytes"] == 100
    assert (task["ts"], task["dur"], task["tid"]) == (pytest.approx(0.2), pytest.approx(1.6), 1)


def test_profiles_of_nothing() -> None:
    assert profile_of((), new_profile(0)) == Profile(())
    assert ProfileRow(STEPS[0], 0.0, 0).gigaflops == 0.0
