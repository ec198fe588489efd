"""Models for the page: with a loop, a branch, fusions, and names as a stranger might choose them."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HOSTILE = (
    "</script><img src=x onerror=\"document.title='hacked'\">",
    "</style><svg onload=document.title='hacked'>",
    '"><b id=hacked>{{script}}<!--<script>',
    "a\u202egnp.exe\u2028\x07",
)


def hostile_model() -> onnx.ModelProto:
    """x -> Conv -> Relu -> MatMul and a Loop, every name hostile."""
    rng = np.random.default_rng(0)
    first, second, third, fourth = HOSTILE
    weights = [
        numpy_helper.from_array(rng.standard_normal((8, 3, 3, 3)).astype(np.float32), f"weight {first}"),
        numpy_helper.from_array(rng.standard_normal((8, 5)).astype(np.float32), f"matrix {second}"),
    ]
    nodes = [
        helper.make_node("Conv", [f"x {third}", weights[0].name], [f"c {first}"], f"conv {first}", pads=[1] * 4),
        helper.make_node("Relu", [f"c {first}"], [f"r {second}"], f"relu {second}"),
        helper.make_node("GlobalAveragePool", [f"r {second}"], ["p"], f"pool {third}"),
        helper.make_node("Flatten", ["p"], ["f"], f"flatten {fourth}"),
        helper.make_node("MatMul", ["f", weights[1].name], ["m"], f"product {fourth}"),
        helper.make_node("Softmax", ["m"], [f"y {fourth}"], f"softmax {first}"),
    ]
    graph = helper.make_graph(
        nodes,
        f"graph {first}",
        [helper.make_tensor_value_info(f"x {third}", TensorProto.FLOAT, [1, 3, 12, 12])],
        [helper.make_tensor_value_info(f"y {fourth}", TensorProto.FLOAT, [1, 5])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def recurrent_model() -> onnx.ModelProto:
    """An LSTM over 12 steps: a loop with steps inside; and an If."""
    rng = np.random.default_rng(0)
    arrays = {"w": (1, 16, 6), "r": (1, 16, 4), "limit": ()}
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in arrays.items()]
    value = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    then = helper.make_graph([helper.make_node("Exp", ["s"], ["z"], "/then/Exp")], "then", [], [value])
    otherwise = helper.make_graph([helper.make_node("Tanh", ["s"], ["z"], "/else/Tanh")], "else", [], [value])
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["", "h"], "/lstm/LSTM", hidden_size=4),
        helper.make_node("ReduceSum", ["h"], ["s"], "/Sum", keepdims=0),
        helper.make_node("Greater", ["s", "limit"], ["c"], "/Greater"),
        helper.make_node("If", ["c"], ["y"], "/If", then_branch=then, else_branch=otherwise),
    ]
    graph = helper.make_graph(
        nodes,
        "recurrent",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [12, 2, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
