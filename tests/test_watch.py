"""The watch over a compile: spans inside spans, an end in time, and one watch for each thread."""

import threading

import pytest

from onnxla import watch
from onnxla.errors import ResourceLimitError


def test_spans_are_parts_of_the_span_around() -> None:
    told: list[tuple[str, float]] = []
    with watch.watching(lambda name, part: told.append((name, round(part, 3)))):
        with watch.span("a", 0.0, 0.5):
            watch.part_done(0.5)
        with watch.span("b", 0.5, 1.0), watch.span("", 0.5, 1.0):
            watch.part_done(0.2)
    assert told == [
        ("a", 0.0),
        ("a", 0.25),
        ("a", 0.5),
        ("b", 0.5),
        ("b", 0.75),
        ("b", 0.8),
        ("b", 1.0),
        ("b", 1.0),
    ]


def test_the_time_ends_the_work_and_names_it() -> None:
    with pytest.raises(ResourceLimitError) as caught, watch.watching(None, 1e-9), watch.span("passes: x", 0.0, 1.0):
        raise AssertionError("nothing begins after the end")
    assert str(caught.value) == (
        "compiling takes longer than compile_timeout=1e-09 seconds (it stopped in: passes: x); "
        "a larger compile_timeout allows more"
    )


def test_without_a_watch_nothing_happens() -> None:
    with watch.span("a", 0.0, 1.0):
        watch.part_done(0.5)
        watch.check()
    assert watch.seconds_left() is None


def test_each_thread_has_its_own() -> None:
    seen: list[float | None] = []
    with watch.watching(None, 100):
        thread = threading.Thread(target=lambda: seen.append(watch.seconds_left()))
        thread.start()
        thread.join()
        assert watch.seconds_left() is not None
    assert seen == [None]


def test_memory_grows_with_what_is_kept() -> None:
    before = watch.peak_memory()
    kept = b"x" * (before + (64 << 20))
    assert watch.peak_memory() >= before + len(kept) // 2
