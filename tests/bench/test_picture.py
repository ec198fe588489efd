"""The pictures show every model of an entry, in groups, in order; what fails too."""

import re
from pathlib import Path
from xml.etree import ElementTree

from tests.bench.history import Entry
from tests.bench.models import models_of
from tests.bench.picture import memory_bars, picture, speed_bars
from tests.cli.command import relu_model

SPEED = Entry(
    "2026-11-30",
    "a",
    1,
    {"onnxruntime": "1", "openvino": "2"},
    {
        "slow": {"arithmetic": "f32", "ratio": {"onnxruntime": 0.5, "openvino": 0.25}, "differing": []},
        "fast": {"arithmetic": "f32", "ratio": {"onnxruntime": 4.0}, "differing": ["onnxruntime"]},
        "broken<": {"arithmetic": "f32", "error": "no such operator"},
        "small": {"arithmetic": "int8", "ratio": {"onnxruntime": 2.0}, "differing": []},
        "half": {"arithmetic": "f16", "ratio": {"onnxruntime": 3.0}, "differing": []},
    },
)


def test_every_model_has_its_bar_in_its_group() -> None:
    bars = list(speed_bars(SPEED))
    assert [bar.name for bar in bars] == ["fast", "half", "small", "slow", "broken<"]
    by_name = {bar.name: bar for bar in bars}
    assert by_name["fast"].text == "4.00 (results differ)" and not by_name["slow"].good
    assert by_name["slow"].ticks == [2.0], "openvino is twice as fast as onnxruntime"
    svg = picture(bars, "title", "footer")
    texts = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]
    assert [t for t in texts if t in {*by_name, "f32", "int8", "f16"}] == [
        *("f32", "fast", "slow", "broken<"),
        *("int8", "small"),
        *("f16", "half"),
    ]
    assert "no such operator" in texts
    width = int(re.search(r'width="(\d+)"', svg)[1])  # type: ignore[index]
    assert all(float(x) < width for x in re.findall(r'x="([\d.]+)"', svg))


def test_memory_shows_the_arena_in_the_bar() -> None:
    row = {"arithmetic": "f32", "onnxla": 50_000_000, "onnxruntime": 100_000_000, "arena": 10_000_000}
    failed = {"arithmetic": "f32", "error": "no such operator"}
    large = {**row, "onnxla": 200_000_000}
    bars = list(memory_bars(Entry("2026-11-30", "a", 1, {}, {"b": failed, "c": large, "m": row})))
    assert [(bar.name, bar.length, bar.good, bar.dark) for bar in bars] == [
        ("m", 0.5, True, 0.2),
        ("c", 2.0, False, 0.05),
        ("b", 0.0, True, 0.0),
    ]
    assert bars[0].text == "0.50: 50 MB, arena 10.0 MB"


def test_models_are_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    relu_model(tmp_path / "first.onnx"), relu_model(tmp_path / "second" / "model.onnx")
    (tmp_path / "second" / "model.npz").touch()
    first, second = models_of(tmp_path)
    assert (first.name, first.inputs, first.arithmetic()) == ("first", None, "f32")
    assert (second.name, second.inputs) == ("second", tmp_path / "second" / "model.npz")
