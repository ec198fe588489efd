"""ONNX models: bytes to a module, or every reason why not."""

from functools import cache

from onnx import ModelProto, parser

from onnxla.errors import raise_problems
from onnxla.frontends.onnx.importer import try_import
from onnxla.frontends.onnx.model_file import read_model
from onnxla.frontends.onnx.signature import signature_of
from onnxla.hlo.verifier import verify
from tests.hostile.fuzzers.atheris_main import main
from tests.hostile.fuzzers.mutation import message_mutator
from tests.hostile.fuzzers.target import LIMITS, OPTIONS, Target

_HEAD = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3, "com.microsoft" : 1, "own" : 1]>\n'
_FUNCTION = """
<domain: "own", opset_import: ["" : 21]> twice <times> (a) => (b) {
  k = Constant <value_float: float = @times> ()
  b = Mul (a, k)
}"""
MODELS = (
    "g (float[N,3,9,9] x, float[4,3,3,3] w, float[4] b) => (y) "
    "{ c = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w, b) r = Relu (c) y = MaxPool <kernel_shape = [2,2]> (r) }",
    "g (float[N,M] x) => (y) <int64[2] s = {0,-1}, int64[1] one = {1}> "
    "{ h = Shape (x) n = Gather <axis = 0> (h, one) t = Concat <axis = 0> (one, n) r = Reshape (x, s) "
    "y = Expand (r, t) }",
    "g (bool c, float[2,3] x) => (y) { y = If (c) <then_branch = a () => (t) { t = Neg (x) }, "
    "else_branch = b () => (e) { e = Abs (x) }> }",
    "g (float[2,3] x, int64 n, bool go) => (y) { y = Loop (n, go, x) <body = b (int64 i, bool c, float[2,3] v) "
    "=> (d, w) { d = Identity (c) w = Add (v, v) }> }",
    "g (float[5,2] x, float[2] i) => (y, z) { y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] v) "
    "=> (o, p) { o = Add (s, v) p = Neg (o) }> (i, x) }",
    "g (float[3,5,4] x, float[1,24,4] w, float[1,24,6] r) => (y, h, c) { y, h, c = LSTM <hidden_size = 6> (x, w, r) }",
    "g (uint8[2,8] x, float[8,4] w) => (y) <float s = {0.5}, uint8 z = {3}> "
    "{ d = DequantizeLinear (x, s, z) m = MatMul (d, w) y = QuantizeLinear (m, s, z) }",
    "g (float[2,8] x) => (y, v, i) <int64[1] k = {3}, int64[2] st = {0,-1}, int64[2] en = {9,-9}, int64[2] ax = {0,1}, "
    "int64[2] sp = {1,-1}> { s = Slice (x, st, en, ax, sp) v, i = TopK (s, k) y = Softmax (s) }",
    "g (float[2,3] x) => (y) { y = own.twice <times: float = 2.0> (x) }" + _FUNCTION,
    'g (float[2,3,4] x, float[4,5] w) => (y) { e = Einsum <equation = "bij,jk->bik"> (x, w) '
    "y = com.microsoft.Gelu (e) }",
    "g (float[4,2] x) => (y, z) { s = SplitToSequence <axis = 0> (x) n = SequenceLength (s) y = ConcatFromSequence "
    "<axis = 0> (s) z = Cast <to = 1> (n) }",
)


def run(data: bytes) -> None:
    """Import with size 2 for every open dimension."""
    model = read_model(data)
    dims: dict[str, int] = {}
    shapes = {}
    for spec in signature_of(model).inputs:
        if spec.shape is None:
            shapes[spec.name] = (2, 2)
        else:
            dims.update({n: 2 for n in spec.shape if isinstance(n, str)})
    result = try_import(model, shapes=shapes, dims=dims, options=OPTIONS, limits=LIMITS)
    raise_problems(result.problems)
    assert result.model is not None
    verify(result.model.module)


@cache
def seeds() -> list[bytes]:
    return [parser.parse_model(_HEAD + text).SerializeToString() for text in MODELS]


def node_cases() -> list[bytes]:
    """ONNX's own tests of its operators."""
    from onnx.backend.test.case.node import collect_testcases

    models = [case.model.SerializeToString() for case in collect_testcases(None) if case.model is not None]
    return [data for data in models if len(data) < 4096]


TARGET = Target("importer", seeds, run, message_mutator(ModelProto), node_cases)

if __name__ == "__main__":
    main(TARGET)
