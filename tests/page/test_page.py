"""What is on the page, and that it is one file that asks nobody for anything and obeys no name."""

import base64
import hashlib
import html
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxla
from onnxla.errors import ArtifactError
from onnxla.inside.inside import CODE_STAGE, inside_of
from onnxla.page.document import document_of
from onnxla.page.html import page_html, visible
from onnxla.page.model_page import model_page
from onnxla.roofline.limits import Limits, Memory
from onnxla.runtime.program import Program
from tests.cli.command import DIGITS
from tests.page.models import HOSTILE, hostile_model, recurrent_model

LIMITS = Limits(1, 50.0, (Memory("L2", 1 << 20, 100.0), Memory("memory", None, 10.0)), 1e-7, 1e-6)


def compiled(model: onnx.ModelProto | str, **arguments: Any) -> onnxla.CompiledModel:
    return onnxla.compile(model, options={"cache_dir": None}, **arguments)


def page_of(model: onnxla.CompiledModel, title: str = "a model") -> str:
    return model_page(model.programs[0], model.about, title)


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def texts_of(page: str) -> Any:
    found = re.search(r'id="texts">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[1]), -15))


@pytest.fixture(scope="module")
def digits() -> onnxla.CompiledModel:
    return compiled(DIGITS, dims={"batch": 2})


@pytest.fixture(scope="module")
def digits_page(digits: onnxla.CompiledModel) -> str:
    return page_of(digits)


@pytest.fixture(scope="module")
def recurrent_page(recurrent: onnxla.CompiledModel) -> str:
    return page_of(recurrent)


@pytest.fixture(scope="module")
def recurrent() -> onnxla.CompiledModel:
    return compiled(recurrent_model())


def test_every_kernel_has_its_code_and_every_step_its_box(digits: onnxla.CompiledModel, digits_page: str) -> None:
    data, texts = data_of(digits_page), texts_of(digits_page)
    assert not data["notes"]
    assert [s["name"] for s in data["steps"]] == [s.name for s in digits.programs[0].steps]
    for step in data["steps"]:
        assert step["box"] >= 0 and step["buffers"]
        symbol, resources = data["kernels"][step["kernel"]]
        (language, ir), (other, code) = texts["code"][symbol]
        assert (language, other) == ("LLVM IR", "assembly")
        assert f"define void @{symbol}(" in ir and f"{symbol}:" in code and "ret" in code
        assert resources[0][0] == "instructions" and int(resources[0][1]) > 3
        assert texts["boxes"][str(step["box"])].startswith("%")
    assert "/conv1/Conv" in json.dumps(data) and texts["module"].startswith("HloModule")


def test_boxes_know_the_nodes_that_they_come_from(digits_page: str) -> None:
    boxes = data_of(digits_page)["boxes"]
    (conv,) = (b for b in boxes if ["Conv", "/conv1/Conv"] in b.get("nodes", []) and b["c"] == "contraction")
    assert conv["t"] == "Conv · Relu"
    assert [weight for weight in conv["weights"] if weight[1].count(",") == 3]
    inner = [b["t"] for b in boxes if b.get("inner")]
    assert "convolution" in inner and "maximum" in inner


def test_inputs_outputs_and_lines(digits_page: str) -> None:
    data = data_of(digits_page)
    kinds = [box["c"] for box in data["boxes"]]
    assert kinds.count("input") == 1 and kinds.count("output") == 2
    for picture in (data["closed"], data["open"]):
        drawn = {row[0] for row in picture["boxes"]}
        assert all(a in drawn and b in drawn for a, b, _ in picture["lines"])
        reached = {b for _, b, _ in picture["lines"]}
        assert all(k in reached for k, kind in enumerate(kinds) if kind == "output")
    inner = {k for k, box in enumerate(data["boxes"]) if box.get("inner")}
    assert not inner & {row[0] for row in data["closed"]["boxes"]}
    assert inner & {row[0] for row in data["open"]["boxes"]}


def test_loops_and_branches_are_open_with_their_steps_inside(recurrent_page: str) -> None:
    data = data_of(recurrent_page)
    control = [k for k, box in enumerate(data["boxes"]) if box["c"] == "control"]
    assert {data["boxes"][k]["op"] for k in control} == {"while", "conditional"}
    titles = [title for _, _, title in data["closed"]["titles"]]
    assert titles.count("condition") == titles.count("body") == 1 and titles.count("case 0") == 1
    drawn = {row[0] for row in data["closed"]["boxes"]}
    inside = [s for s in data["steps"] if s["depth"] and s["kernel"] >= 0]
    assert inside and all(s["box"] in drawn for s in inside)
    words = [box["t"] for box in data["boxes"]]
    assert "LSTM: while" in words and any(word.startswith("LSTM: dot") for word in words)


def test_memory_over_time_fits_the_arena_and_never_overlaps(
    recurrent: onnxla.CompiledModel, recurrent_page: str
) -> None:
    memory = data_of(recurrent_page)["memory"]
    assert memory["steps"] == len(recurrent.programs[0].steps)
    assert memory["buffers"] and max(memory["used"]) <= memory["bytes"]
    for k, (name, first, last, place, size) in enumerate(memory["buffers"]):
        assert 0 <= first <= last < memory["steps"] and place + size <= memory["bytes"]
        for other, a, b, at, length in memory["buffers"][k + 1 :]:
            apart = last < a or b < first or place + size <= at or at + length <= place
            assert apart, f"{name} and {other} lie in one place at one time"


def test_times_and_floors_where_they_were_measured(recurrent: onnxla.CompiledModel) -> None:
    feeds = {"x": np.ones((12, 2, 6), np.float32)}
    program, profile = recurrent.programs[0], recurrent.profile(feeds, runs=1)
    inside = inside_of(program, recurrent.about)
    data = document_of(inside, program, "m", [], profile, LIMITS).data
    assert data["seconds"] == profile.seconds and data["limits"]["gigaflops"] == 50.0
    for step in data["steps"]:
        assert ("floor" in step) == (step["kernel"] >= 0 or step["op"] == "copy")
    assert {step["rounds"] for step in data["steps"]} >= {1, 12, 13}


def test_an_artifact_gives_the_same_page(recurrent: onnxla.CompiledModel, recurrent_page: str, tmp_path: Path) -> None:
    recurrent.save(tmp_path / "r.onnxla")
    loaded = onnxla.load_compiled(tmp_path / "r.onnxla")
    assert page_of(loaded) == recurrent_page


def changed(program: Program, **texts: str) -> Program:
    from dataclasses import replace

    return replace(program, texts={**program.texts, **texts})


def test_code_that_is_not_the_artifacts_is_not_shown(recurrent: onnxla.CompiledModel) -> None:
    program = recurrent.programs[0]
    lines = program.texts[CODE_STAGE].splitlines()
    other = "\n".join([lines[0][:-4] + "0000", *lines[1:]]) + "\n"
    page = model_page(changed(program, **{CODE_STAGE: other}), recurrent.about, "m")
    assert data_of(page)["notes"] == [
        f"this onnxla makes other code than the artifact holds for 1 of {len(lines)} kernels"
    ]
    assert len(texts_of(page)["code"]) == len(lines) - 1


@pytest.mark.parametrize(
    ("stage", "text"),
    [("optimized_hlo", ""), ("optimized_hlo", "HloModule m"), ("optimized_hlo", "ENTRY %main {"), (CODE_STAGE, "a\n")],
)
def test_texts_that_do_not_read_back_are_an_error(digits: onnxla.CompiledModel, stage: str, text: str) -> None:
    with pytest.raises(ArtifactError, match="cannot be read back"):
        model_page(changed(digits.programs[0], **{stage: text}), digits.about, "m")


def test_no_name_becomes_markup() -> None:
    page = page_of(compiled(hostile_model()), HOSTILE[0])
    assert page.count("<script") == page.count("</script>") == 3
    assert "<img" not in page and "onload=" not in re.sub(r'<script type="application/json".*?</script>', "", page)
    for attack in HOSTILE:
        assert attack not in page
    for data in (data_of(page), texts_of(page)):
        assert not re.search(r"[\x00-\x08\u2028\u202e]", json.dumps(data, ensure_ascii=False))
    names = [name for box in data_of(page)["boxes"] for _, name in box.get("nodes", [])]
    assert f"relu {HOSTILE[1]}" in names, "the page shows the name as it is"
    assert visible(f"pool {HOSTILE[3]}") == "pool a\\u202egnp.exe\\u2028\\x07"


def test_the_page_asks_for_nothing_and_allows_only_its_own_script(recurrent_page: str) -> None:
    page = recurrent_page
    assert not re.search(r"""(?:src|href|url\()\s*=?\s*["']?(?!#)\w*:?//""", page.partition('id="data"')[0])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    rules = html.unescape(policy[1])
    assert rules.startswith("default-src 'none'; script-src 'sha256-")
    for pattern in (r"<style>(.*?)</style>", r"<script>(.*?)</script>"):
        (text,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in rules


def test_equal_models_give_equal_pages(recurrent_page: str) -> None:
    assert page_of(compiled(recurrent_model())) == recurrent_page


def test_a_page_for_a_gpu_has_cuda_ptx_and_registers() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    model = compiled(DIGITS, dims={"batch": 2}, target="gpu")
    page = page_of(model)
    data, texts = data_of(page), texts_of(page)
    for step in data["steps"]:
        if step["kernel"] < 0:
            continue
        symbol, resources = data["kernels"][step["kernel"]]
        (language, source), (other, ptx) = texts["code"][symbol]
        assert (language, other) == ("CUDA C++", "PTX")
        assert symbol in source and ptx.startswith(f".visible .entry {symbol}(") and ptx.endswith("}")
        assert int(dict(resources)["sm_80 registers"]) > 0


def test_page_html_keeps_braces_of_the_data() -> None:
    from onnxla.page.document import Document

    page = page_html(Document({"title": "{{script}} & <b>", "x": ["{{data}}"]}, {}))
    assert data_of(page) == {"title": "{{script}} & <b>", "x": ["{{data}}"]}
    assert "<title>{{script}} &amp; &lt;b&gt; · onnxla</title>" in page
