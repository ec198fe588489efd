"""Graphs with damaged bytes give a model or a typed error, within limits."""

import random
from pathlib import Path

import numpy as np
import pytest

from onnxla.config import Limits
from onnxla.errors import ModelFormatError, OnnxlaError
from onnxla.frontends.tensorflow.graph import Body, Edge, Node
from onnxla.frontends.tensorflow.importer import try_import
from onnxla.frontends.tensorflow.messages import GraphDef
from onnxla.frontends.tensorflow.model_file import read_tensorflow
from onnxla.frontends.tensorflow.variables import _restored_key
from tests.frontends.tensorflow.graphs import graph

FOLDER = Path(__file__).parent / "operations"
FILES = ("slices", "while", "scan_v1", "branches_v1", "conv2d_same_2_1", "segments", "joining", "stateless_random")
ROUNDS = 25


def damaged(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 6))):
        place = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[place] = rng.randrange(256)
            case 1:
                changed[place] ^= 1 << rng.randrange(8)
            case 2:
                del changed[place : place + rng.randrange(1, 9)]
            case _:
                other = rng.randrange(len(changed))
                changed[place : place + 8] = changed[other : other + 8]
        if not changed:
            return b"\n"
    return bytes(changed)


@pytest.mark.parametrize("name", FILES)
def test_damaged_graphs_are_imported_or_refused(name: str, tmp_path: Path) -> None:
    arrays = np.load(FOLDER / f"{name}.npz")
    rng = random.Random(name)
    inputs, outputs = ([str(n) for n in arrays[key]] for key in ("inputs", "outputs"))
    refused = 0
    for _ in range(ROUNDS):
        (tmp_path / "graph.pb").write_bytes(damaged(arrays["graph"].tobytes(), rng))
        try:
            model = read_tensorflow(tmp_path / "graph.pb")
            result = try_import(model, inputs=inputs, outputs=outputs, limits=Limits(elements=1 << 20))
            refused += bool(result.problems)
        except OnnxlaError:
            refused += 1
    assert refused


def test_a_function_that_calls_itself_is_refused() -> None:
    g = GraphDef()
    node = g.node.add(name="y", op="PartitionedCall")
    node.attr["f"].func.name = "again"
    function = g.library.function.add()
    function.signature.name = "again"
    function.signature.output_arg.add(name="r", type=1)
    function.ret["r"] = "call:output:0"
    call = function.node_def.add(name="call", op="PartitionedCall")
    call.attr["f"].func.name = "again"
    result = try_import(read_tensorflow(g), outputs=["y"])
    assert [p.cause for p in result.problems] == ["PartitionedCall: the function again calls itself"]


def test_a_range_of_a_billion_is_refused_at_once() -> None:
    g = graph(("r", "Range", ["zero", "end", "one"]), constants={"zero": 0, "one": 1, "end": 1_000_000_000})
    result = try_import(read_tensorflow(g), outputs=["r"])
    assert [p.cause for p in result.problems] == ["1000000000 places along one dimension"]


@pytest.mark.parametrize("operation, inputs", [("Switch", 2), ("Merge", 1), ("Exit", 1), ("NextIteration", 1)])
def test_control_flow_without_its_inputs_is_refused(operation: str, inputs: int) -> None:
    g = graph(("y", operation, ["x"] * (inputs - 1)), constants={"x": 1})
    with pytest.raises(ModelFormatError, match=rf"y \({operation}\) has {inputs - 1} inputs, and needs {inputs}"):
        read_tensorflow(g)


def test_a_restored_value_that_waits_for_itself_has_no_key() -> None:
    nodes = {"loop": Node("loop", "Identity", (Edge("loop"),), (), {}, 0)}
    assert _restored_key(Body("g", nodes), Edge("loop")) is None


def test_a_tensor_in_a_billion_parts_is_refused_at_once() -> None:
    g = GraphDef()
    x = g.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = 1
    for size in (1 << 30, 2):
        x.attr["shape"].shape.dim.add(size=size)
    g.node.add(name="y", op="Unpack", input=["x"])
    result = try_import(read_tensorflow(g), outputs=["y"])
    assert [p.cause for p in result.problems] == ["1073741824 places along one dimension"]


def test_variables_whose_shared_names_are_no_text_stay_apart() -> None:
    g = GraphDef()
    for k, name in enumerate((b"\xc4", b"\xc5")):
        node = g.node.add(name=f"v{k}", op="VarHandleOp")
        node.attr["shared_name"].s = name
    found = read_tensorflow(g).variables
    assert found.get("\\xc4") is not None and found.get("\\xc5") is not None
