"""Run `onnxla ...` in this process, and small models to run it on."""

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from onnxla.cli.main import run_command_line

EXAMPLES = Path(__file__).parents[2] / "examples"
DIGITS = str(EXAMPLES / "digits.onnx")
DIGITS_INPUT = str(EXAMPLES / "digits.npz")


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def onnxla(*arguments: object) -> Ended:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command_line([str(a) for a in arguments])
    return Ended(code, out.getvalue(), err.getvalue())


def succeed(*arguments: object) -> Ended:
    """As `onnxla`, and the command must end well."""
    ended = onnxla(*arguments)
    assert ended.code == 0, ended.err
    return ended


def save_model(path: Path, *nodes: onnx.NodeProto, x: tuple[int | str, ...] = (4,), y: int = TensorProto.FLOAT) -> Path:
    """A model of `nodes` from float x to y."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", y, None)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def relu_model(path: Path, name: str = "relu") -> Path:
    return save_model(path, helper.make_node("Relu", ["x"], ["y"], name))
