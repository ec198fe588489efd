"""Names from models reach a terminal only as text."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from onnxla.cli.output import duration, plain, print_json, safe, say, size, table, time_left
from tests.cli.command import onnxla, relu_model, succeed


def test_control_characters_are_spelled_out() -> None:
    assert safe("a\x1b[31mb\x07\rc\u202ed") == "a\\x1b[31mb\\x07\\rc\\u202ed"
    assert safe("two\nlines\tand ü 漢") == "two\nlines\tand ü 漢"


def test_no_text_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    say("[red]x[/red] [/] :smile:")
    table(("[b]name[/b]", ">n"), [("[link=http://x]y[/link]", 1)], title="[i]t[/i]")
    out = capsys.readouterr().out
    assert all(
        text in out for text in ("[red]x[/red] [/] :smile:", "[b]name[/b]", "[link=http://x]y[/link]", "[i]t[/i]")
    )


def test_a_hostile_name_of_a_node_is_harmless_in_every_view(tmp_path: Path) -> None:
    model = relu_model(tmp_path / "m.onnx", name="\x1b]0;owned\x07[red]n[/nothing]")
    for command in (
        ["explain", model],
        ["inspect", model],
        ["inspect", model, "--show", "kernels"],
        ["inspect", model, "--show", "hlo"],
        ["inspect", model, "--show", "plan"],
        ["validate", model, "--layers"],
        ["run", model, "--profile"],
    ):
        ended = onnxla(*command)
        assert ended.code == 0, ended.err
        assert "\x1b" not in ended.out and "\x07" not in ended.out


@dataclass
class Point:
    x: float
    y: np.float32


def test_json_knows_dataclasses_arrays_and_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert plain({"p": Point(1.5, np.float32(2)), 3: (np.arange(2), {"a"})}) == {
        "p": {"x": 1.5, "y": 2.0},
        "3": [[0, 1], ["a"]],
    }
    print_json([float("nan"), float("-inf"), np.float64("inf"), Path("a")])
    assert json.loads(capsys.readouterr().out) == ["nan", "-inf", "inf", "a"]


def test_sizes_and_times_for_people() -> None:
    assert [size(n) for n in (0, 1023, 1536, 5 << 20, 3 << 30)] == [
        "0 bytes",
        "1023 bytes",
        "1.5 KB",
        "5.0 MB",
        "3.0 GB",
    ]
    assert [duration(s) for s in (2.5, 0.0125, 3.2e-6)] == ["2.50 s", "12.50 ms", "3.2 us"]


def test_nothing_but_the_document_is_on_standard_output_with_json(tmp_path: Path) -> None:
    model = relu_model(tmp_path / "m.onnx")
    for command in (
        ["compile", model, "-o", tmp_path / "m.onnxla"],
        ["run", model],
        ["validate", model],
        ["bench", model, "--rounds", 1, "--burst", 0],
        ["inspect", model],
        ["inspect", model, "--after", "passes"],
        ["explain", model],
        ["ops", "relu"],
        ["opt", "--list"],
        ["doctor"],
    ):
        assert succeed(*command, "--json").json


@pytest.mark.parametrize(
    ("elapsed", "part", "text"),
    [
        (0.5, 0.5, ""),
        (10.0, 0.01, ""),
        (10.0, 0.5, "10 s left"),
        (60.0, 0.1, "9 min left"),
        (30.0, 0.25, "2 min left"),
        (5.0, 1.0, "0 s left"),
    ],
)
def test_the_time_that_is_left(elapsed: float, part: float, text: str) -> None:
    assert time_left(elapsed, part) == text
