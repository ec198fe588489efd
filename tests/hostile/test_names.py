"""Names out of models reach files, code and pages as text, never as code or markup."""

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import onnxla
from onnxla.ahead.library import write_library
from tests.hostile.models import X, model_of, tensor

MARK = "PWNED"
NAMES = {
    "C": f'*/ int {MARK}(void); /*"\\\n#error {MARK}\n',
    "LLVM": f'"\n define void @{MARK}() {{ ret void }} ; \n',
    "HLO": f'"}}\n{MARK} {{ ROOT x = f32[] parameter(0) }}\n',
    "dot": f'"]; {MARK} [label="<b>',
    "HTML": f"</script><script>{MARK}()</script><img src=x onerror={MARK}()>",
    "path": f"../../../../tmp/{MARK}",
    "terminal": f"\x1b]0;{MARK}\x07\x1b[2J",
}


@pytest.mark.parametrize("kind", NAMES)
def test_hostile_names_stay_text(kind: str, tmp_path: Path) -> None:
    """Names of inputs, outputs, nodes, values and the graph."""
    name = NAMES[kind]
    nodes = [
        helper.make_node("Softmax", [name + "x"], [name + "h"], name=name),
        helper.make_node("Exp", [name + "h"], [name + "y"], name=name),
    ]
    model = model_of(nodes, [tensor(name + "x", [4])], [tensor(name + "y", [4])])
    model.graph.name = name
    folder = tmp_path / "inside" / "dump"
    compiled = onnxla.compile(model.SerializeToString(), options={"dump_to": folder})
    write_library(compiled, folder, "net")
    (result,) = compiled.run(None, {name + "x": X})
    np.testing.assert_allclose(result, np.exp(np.exp(X - 3) / np.exp(X - 3).sum()), rtol=1e-6)
    assert [p for p in tmp_path.rglob("*") if p.is_file() and folder not in p.parents] == []
    for path in (p for p in folder.rglob("*") if p.is_file()):
        assert path.name.isascii() and MARK not in path.name
        if path.suffix in (".a", ".so", ".o", ".npy"):
            continue
        require_harmless(path.suffix, path.read_text(), name)


def require_harmless(suffix: str, text: str, name: str) -> None:
    assert "\x1b" not in text and "\x07" not in text
    for line in text.splitlines():
        assert not re.match(rf"\s*(#error|define.*{MARK}|int {MARK}|{MARK})\b", line), line
    if suffix == ".html":
        assert "<script>" + MARK not in text and "<img src=x" not in text
    if suffix in (".h", ".ll", ".s", ".pc", ".cmake"):
        assert f"@{MARK}" not in text and f"int {MARK}" not in text and "*/ int" not in text
    if suffix == ".dot":
        assert f'"]; {MARK}' not in text.replace('\\"', "")
