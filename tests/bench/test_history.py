"""The history of a CPU's figures: what is written is read again, and what has become worse is found."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.history import Entry, History, keep, last_pairs, read, this_cpu, worse, write
from tests.bench.models import models_of

FIGURES = Path(__file__).parent / "figures"
VERSIONS = {"onnxruntime": "1.32.0"}


def timed(ratio: float, seconds: float = 1.0) -> dict[str, Any]:
    """A model's times."""
    times = {"onnxla": seconds, "onnxruntime": seconds * ratio}
    return {"arithmetic": "f32", "seconds": times, "ratio": {"onnxruntime": ratio}, "differing": [], "refused": {}}


def speed(commit: str, models: dict[str, Any], versions: dict[str, str] | None = None, threads: int = 1) -> Entry:
    return Entry("2026-11-30", commit, threads, VERSIONS if versions is None else versions, models)


@pytest.mark.parametrize("path", sorted(FIGURES.glob("*.json")), ids=lambda path: path.stem)
def test_the_files_in_the_repository_are_as_they_would_be_written(path: Path, tmp_path: Path) -> None:
    history = read(path)
    assert history.cpu == path.stem
    write(tmp_path / "again.json", history)
    assert (tmp_path / "again.json").read_text() == path.read_text()
    assert read(tmp_path / "again.json") == history


def test_a_first_entry_makes_its_folder(tmp_path: Path) -> None:
    entry = speed("1", {"m": timed(1.5)})
    assert keep(tmp_path / "new" / "figures", "speed", entry) == []
    assert read(tmp_path / "new" / "figures" / f"{this_cpu()}.json").speed == [entry]


def test_models_of_a_folder_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.onnx").touch()
    assert [m.name for m in models_of(tmp_path)] == ["a", "b"]
    assert [m.name for m in models_of(tmp_path, ["b"])] == ["b"]
    with pytest.raises(SystemExit, match="holds no model c, d"):
        models_of(tmp_path, ["b", "d", "c"])


def test_a_history_without_entries_is_written_and_read(tmp_path: Path) -> None:
    write(tmp_path / "new.json", History("znver9"))
    assert read(tmp_path / "new.json") == History("znver9")
    assert json.loads((tmp_path / "new.json").read_text()) == {
        "cpu": "znver9",
        "speed": [],
        "memory": [],
        "compiling": [],
    }


def test_a_slower_model_is_found_by_its_ratio_to_onnxruntime() -> None:
    before = speed("a", {"slower": timed(1.5), "noisy": timed(1.5, 1.0), "faster": timed(1.0), "gone": timed(1.0)})
    after = speed("b", {"slower": timed(1.4), "noisy": timed(1.45, 9.0), "faster": timed(2.0), "new": timed(0.5)})
    assert worse("speed", before, after) == ["slower: 1.50 -> 1.40 times as fast as onnxruntime"]


def test_times_are_judged_as_they_are_where_onnxruntime_is_another_one() -> None:
    before = speed("a", {"m": timed(1.5, 0.010), "n": timed(1.5, 0.010)})
    after = speed("b", {"m": timed(1.0, 0.010), "n": timed(2.0, 0.012)}, {"onnxruntime": "2.0.0"})
    assert worse("speed", before, after) == ["n: 10 -> 12 ms"]


def test_a_model_that_fails_now_is_worse_and_one_that_failed_before_is_not() -> None:
    failed = {"arithmetic": "f32", "error": "out of memory"}
    before, after = speed("a", {"m": timed(1.0), "n": failed}), speed("b", {"m": failed, "n": timed(0.5)})
    assert worse("speed", before, after) == ["m: fails now: out of memory"]


def test_memory_that_has_grown_is_found() -> None:
    before = Entry("2026-11-29", "a", 1, models={"m": {"onnxla": 100e6}, "n": {"onnxla": 100e6}})
    after = Entry("2026-11-30", "b", 1, models={"m": {"onnxla": 104e6}, "n": {"onnxla": 120e6}})
    assert worse("memory", before, after) == ["n: 100.0 -> 120.0 MB"]


def test_compiling_that_takes_longer_is_found_cold_or_warm() -> None:
    before = Entry("2026-11-29", "a", 0, models={n: {"cold": 2.0, "warm": 0.1} for n in "mno"})
    times = {"m": (2.5, 0.12), "n": (1.0, 0.2), "o": (3.0, 0.1)}
    after = Entry("2026-11-30", "b", 0, models={n: {"cold": c, "warm": w} for n, (c, w) in times.items()})
    assert worse("compiling", before, after) == ["n: warm, 0.10 -> 0.20 s", "o: cold, 2.00 -> 3.00 s"]


def test_entries_are_compared_with_those_of_the_same_number_of_threads() -> None:
    one, two, again = (speed(c, {"m": timed(1.0)}, threads=t) for c, t in (("a", 1), ("a", 2), ("b", 1)))
    assert list(last_pairs(History("znver9", [one, two, again]))) == [("speed", one, again)]


def test_figures_of_one_day_and_commit_become_one_entry(tmp_path: Path) -> None:
    assert keep(tmp_path, "speed", speed("a", {"m": timed(1.5), "n": timed(1.0)})) == []
    assert keep(tmp_path, "speed", speed("a", {"m": timed(1.4)})) != []
    assert keep(tmp_path, "speed", speed("b", {"m": timed(1.4)})) == []
    history = read(tmp_path / f"{this_cpu()}.json")
    assert [(e.commit, e.models) for e in history.speed] == [
        ("a", {"m": timed(1.4), "n": timed(1.0)}),
        ("b", {"m": timed(1.4)}),
    ]
