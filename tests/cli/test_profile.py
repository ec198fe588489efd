"""`onnxla profile` and `inspect --html`, `--roofline` as their user meets them."""

import json
from pathlib import Path

import pytest

from tests.cli.command import DIGITS, onnxla, relu_model, succeed


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    artifact = tmp_path_factory.mktemp("profile") / "digits.onnxla"
    succeed("compile", DIGITS, "--dim", "batch=10", "-o", artifact)
    return artifact


@pytest.fixture(autouse=True)
def limits(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured once for the tests of this file, and not in the user's own folder."""
    monkeypatch.setenv("ONNXLA_LIMITS_FILE", str(tmp_path_factory.getbasetemp() / "limits.json"))


def test_profile_shows_times_beside_floors(digits: Path, tmp_path: Path) -> None:
    trace, page = tmp_path / "t.json", tmp_path / "p.html"
    out = succeed("profile", digits, "--runs", 2, "--threads", 1, "--top", 3, "--trace", trace, "--html", page).out
    for words in ("x floor", "/conv1/", "more steps take", "profiling itself", "GFLOP/s in fp32", "winograd"):
        assert words in out
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    assert any("/conv1/" in e.get("args", {}).get("node", "") for e in events) and all(e["dur"] >= 0 for e in events)
    assert '"seconds":' in page.read_text() and '"gigaflops":' in page.read_text()


def test_profile_as_json(digits: Path) -> None:
    document = succeed("profile", digits, "--runs", 1, "--threads", 1, "--json").json
    assert document["machine"]["threads"] == 1 and document["seconds"] > 0
    conv = next(s for s in document["steps"] if s["source"].startswith("/conv1/") and s["flops"])
    assert conv["floor_seconds"] > 0 and conv["bound"] and conv["rounds"] == 1 and conv["also"]


def test_inspect_writes_a_page_of_an_artifact_and_of_a_model(tmp_path: Path) -> None:
    model, artifact = relu_model(tmp_path / "m.onnx"), tmp_path / "m.onnxla"
    succeed("compile", model, "-o", artifact)
    pages: list[str] = []
    for path in (artifact, model):
        page = tmp_path / f"{len(pages)}.html"
        assert "KB" in succeed("inspect", path, "--html", page).out
        pages.append(page.read_text().replace("m.onnxla", "m.onnx"))
    assert pages[0] == pages[1]
    assert onnxla("inspect", artifact, "--html", tmp_path / "no" / "p.html").code == 2


def test_resources_of_each_kernel(digits: Path) -> None:
    lines = succeed("inspect", digits, "--show", "resources").out.splitlines()
    assert len(lines) > 5 and all("instructions: " in line and "stack: " in line for line in lines)
    assert any("convolution" in line for line in lines)


def test_roofline_of_this_machine_and_of_a_gpu_that_is_not_there(digits: Path) -> None:
    assert "on this machine with" in succeed("inspect", digits, "--roofline").out
    out = succeed("inspect", DIGITS, "--dim", "batch=10", "--target", "gpu", "--roofline", "--gpu", "h200").out
    assert "on one H200" in out and "/conv2/" in out and "4800 GB/s" in out
    document = succeed("inspect", DIGITS, "--dim", "batch=10", "--target", "gpu", "--roofline", "--json").json
    assert document["gpu"]["name"] == "A100" and document["seconds"] >= 9 * 2e-6
    assert any(step["flops"] for step in document["steps"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--roofline", "--gpu", "H100"], "--gpu H100 goes with --target gpu"),
        (["--gpu", "H100"], "--gpu goes with --roofline"),
        (["--target", "gpu", "--roofline"], "no code for a GPU, only for a CPU"),
    ],
)
def test_roofline_of_the_wrong_thing(digits: Path, arguments: list[str], message: str) -> None:
    ended = onnxla("inspect", digits, *arguments)
    assert ended.code == 2 and message in ended.err
