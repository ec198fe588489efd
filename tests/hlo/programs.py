"""One small program for every operation, as text: what the tests of text, verifier and modules share."""

_ADD = "%add {\n  %l = f32[] parameter(0)\n  %r = f32[] parameter(1)\n  ROOT %s = f32[] add(%l, %r)\n}\n"
_GE = (
    "%ge {\n  %l = f32[] parameter(0)\n  %r = f32[] parameter(1)\n  ROOT %c = pred[] compare(%l, %r), direction=GE\n}\n"
)
_LT = _GE.replace("ge {", "lt {").replace("GE", "LT")
_TWICE = "%twice {\n  %v = f32[4]{0} parameter(0)\n  ROOT %t = f32[4]{0} add(%v, %v)\n}\n"
_SAME = "%same {\n  ROOT %v = f32[4]{0} parameter(0)\n}\n"
_COUNT = """%count {
  %i = s32[] parameter(0)
  %one = s32[] constant(1)
  ROOT %n = s32[] add(%i, %one)
}

%below {
  %j = s32[] parameter(0)
  %ten = s32[] constant(10)
  ROOT %c = pred[] compare(%j, %ten), direction=LT
}
"""

FLOAT_UNARY = (
    "abs negate sign floor ceil round-nearest-even round-nearest-afz sqrt rsqrt cbrt exponential exponential-minus-one "
    "log log-plus-one logistic erf sine cosine tan asin acos sinh cosh tanh asinh acosh atanh"
).split()
FLOAT_BINARY = "add subtract multiply divide remainder power maximum minimum atan2".split()
INTEGER_UNARY = "not popcnt count-leading-zeros".split()
INTEGER_BINARY = "and or xor shift-left shift-right-logical shift-right-arithmetic".split()

_V = "%v = f32[4]{0} parameter(0)"
_M = "%m = f32[2,3]{1,0} parameter(0)"
_X = "%x = f32[] parameter(1)"

_LINES: dict[str, tuple[str, ...]] = {
    "parameter": ("ROOT %p = (f32[2]{0}, (s32[], pred[])) parameter(0)",),
    "constant": ("ROOT %c = f32[2]{0} constant({1, -2.5})",),
    "iota": ("ROOT %i = s32[2,3]{1,0} iota(), iota_dimension=1",),
    "tuple": (_V, "ROOT %t = (f32[4]{0}, ()) tuple(%v, %e)"),
    "get-tuple-element": (
        "%p = (f32[2]{0}, s32[]) parameter(0)",
        "ROOT %g = s32[] get-tuple-element(%p), index=1",
    ),
    "compare": (_V, "ROOT %c = pred[4]{0} compare(%v, %v), direction=LE"),
    "select": (_V, "%c = pred[4]{0} compare(%v, %v), direction=NE", "ROOT %s = f32[4]{0} select(%c, %v, %v)"),
    "clamp": (_V, _X, "ROOT %c = f32[4]{0} clamp(%x, %v, %x)"),
    "convert": (_V, "ROOT %c = bf16[4]{0} convert(%v)"),
    "bitcast-convert": (_V, "ROOT %c = s32[4]{0} bitcast-convert(%v)"),
    "is-finite": (_V, "ROOT %c = pred[4]{0} is-finite(%v)"),
    "complex": (_V, "ROOT %c = c64[4]{0} complex(%v, %v)"),
    "real": ("%z = c64[4]{0} parameter(0)", "ROOT %c = f32[4]{0} real(%z)"),
    "imag": ("%z = c64[4]{0} parameter(0)", "ROOT %c = f32[4]{0} imag(%z)"),
    "broadcast": (_V, "ROOT %b = f32[2,4,3]{2,1,0} broadcast(%v), dimensions={1}"),
    "reshape": (_M, "ROOT %r = f32[6]{0} reshape(%m)"),
    "transpose": (_M, "ROOT %t = f32[3,2]{1,0} transpose(%m), dimensions={1,0}"),
    "reverse": (_M, "ROOT %r = f32[2,3]{1,0} reverse(%m), dimensions={0,1}"),
    "slice": (_M, "ROOT %s = f32[1,2]{1,0} slice(%m), slice={[1:2:1], [0:3:2]}"),
    "concatenate": (_M, "ROOT %c = f32[2,6]{1,0} concatenate(%m, %m), dimensions={1}"),
    "pad": (_M, _X, "ROOT %p = f32[3,6]{1,0} pad(%m, %x), padding=1_0_0x0_1_1"),
    "dynamic-slice": (
        _M,
        "%i = s32[] parameter(1)",
        "ROOT %d = f32[1,3]{1,0} dynamic-slice(%m, %i, %i), dynamic_slice_sizes={1,3}",
    ),
    "dynamic-update-slice": (
        _M,
        "%u = f32[1,1]{1,0} parameter(1)",
        "%i = s64[] parameter(2)",
        "ROOT %d = f32[2,3]{1,0} dynamic-update-slice(%m, %u, %i, %i)",
    ),
    "gather": (
        _M,
        "%i = s32[5]{0} parameter(1)",
        "ROOT %g = f32[5,3]{1,0} gather(%m, %i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,3}",
    ),
    "scatter": (
        _ADD,
        _M,
        "%i = s32[5]{0} parameter(1)",
        "%u = f32[5,3]{1,0} parameter(2)",
        "ROOT %s = f32[2,3]{1,0} scatter(%m, %i, %u), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%add",
    ),
    "sort": (_LT, _M, "ROOT %s = f32[2,3]{1,0} sort(%m), dimensions={1}, is_stable=true, to_apply=%lt"),
    "dot": (
        "%a = f32[7,2,3]{2,1,0} parameter(0)",
        "%b = f32[7,3,5]{2,1,0} parameter(1)",
        "ROOT %d = f32[7,2,5]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    ),
    "convolution": (
        "%a = f32[1,4,8,8]{3,2,1,0} parameter(0)",
        "%k = f32[6,2,3,3]{3,2,1,0} parameter(1)",
        "ROOT %c = f32[1,6,4,6]{3,2,1,0} convolution(%a, %k), window={size=3x3 stride=2x1 pad=1_1x1_1 rhs_dilate=1x2}, "
        "dim_labels=bf01_oi01->bf01, feature_group_count=2",
    ),
    "reduce": (_ADD, _M, _X, "ROOT %r = f32[2]{0} reduce(%m, %x), dimensions={1}, to_apply=%add"),
    "reduce-window": (
        _ADD,
        _M,
        _X,
        "ROOT %r = f32[2,3]{1,0} reduce-window(%m, %x), window={size=1x3 pad=0_0x1_1}, to_apply=%add",
    ),
    "select-and-scatter": (
        _ADD,
        _GE,
        _V,
        "%u = f32[2]{0} parameter(2)",
        _X,
        "ROOT %s = f32[4]{0} select-and-scatter(%v, %u, %x), window={size=2 stride=2}, select=%ge, scatter=%add",
    ),
    "while": (
        _COUNT,
        "%i = s32[] parameter(0)",
        "ROOT %w = s32[] while(%i), condition=%below, body=%count",
    ),
    "conditional": (
        _TWICE,
        _SAME,
        _V,
        "%p = pred[] parameter(1)",
        "ROOT %c = f32[4]{0} conditional(%p, %v, %v), true_computation=%twice, false_computation=%same",
    ),
    "call": (_TWICE, _V, "ROOT %c = f32[4]{0} call(%v), to_apply=%twice"),
    "map": (_ADD, _M, "ROOT %x = f32[2,3]{1,0} map(%m, %m), dimensions={0,1}, to_apply=%add"),
    "fusion": (_TWICE, _V, "ROOT %f = f32[4]{0} fusion(%v), kind=kLoop, calls=%twice"),
    "custom-call": (
        _TWICE,
        _V,
        'ROOT %c = f32[4]{0} custom-call(%v), custom_call_target="twice", backend_config="a\\"b", '
        "called_computations={%twice}",
    ),
    "rng-bit-generator": (
        "%s = u64[2]{0} parameter(0)",
        "ROOT %r = (u64[2]{0}, u32[5]{0}) rng-bit-generator(%s), algorithm=rng_three_fry",
    ),
    "fft": ("%z = c64[4]{0} parameter(0)", "ROOT %f = c64[4]{0} fft(%z), fft_type=FFT, fft_length={4}"),
    "cholesky": ("%a = f32[3,3]{1,0} parameter(0)", "ROOT %c = f32[3,3]{1,0} cholesky(%a), lower=true"),
    "triangular-solve": (
        "%a = f32[3,3]{1,0} parameter(0)",
        "%b = f32[3,2]{1,0} parameter(1)",
        "ROOT %t = f32[3,2]{1,0} triangular-solve(%a, %b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    ),
}


def _program(lines: tuple[str, ...]) -> str:
    computations = [line for line in lines if line.startswith("%") and "{\n" in line]
    body = "\n".join(f"  {line}" for line in lines if line not in computations)
    if "%e)" in body:
        body = "  %e = () tuple()\n" + body
    return "\n".join(["HloModule program", *computations, f"ENTRY %main {{\n{body}\n}}\n"])


def _elementwise(opcode: str, type: str, arity: int) -> str:
    operands = ", ".join(["%v"] * arity)
    return _program((f"%v = {type}[4]{{0}} parameter(0)", f"ROOT %r = {type}[4]{{0}} {opcode}({operands})"))


PROGRAMS: dict[str, str] = {
    **{opcode: _elementwise(opcode, "f32", 1) for opcode in FLOAT_UNARY},
    **{opcode: _elementwise(opcode, "f32", 2) for opcode in FLOAT_BINARY},
    **{opcode: _elementwise(opcode, "s32", 1) for opcode in INTEGER_UNARY},
    **{opcode: _elementwise(opcode, "s32", 2) for opcode in INTEGER_BINARY},
    **{opcode: _program(lines) for opcode, lines in _LINES.items()},
}
"""By opcode."""

FOREIGN_PROGRAMS: dict[str, str] = {
    "topk": "ENTRY m { x = f32[2,5] parameter(0) ROOT t = (f32[2,3], s32[2,3]) topk(x), k=3, largest=true }",
    "bitcast": "ENTRY m { x = f32[2,3]{0,1} parameter(0) y = f32[3,2]{1,0} bitcast(x) ROOT z = s32[6] bitcast(y) }",
    "copy": "ENTRY m { x = f32[2,3]{0,1} parameter(0) ROOT y = f32[2,3]{1,0} copy(x) }",
    "get-dimension-size": "ENTRY m { x = f32[2,3] parameter(0) ROOT z = s32[] get-dimension-size(x), dimensions={1} }",
    "total-order": "ENTRY m { x = f16[3] parameter(0) ROOT z = pred[3] compare(x, x), direction=LT, type=TOTALORDER }",
}
"""Programs that XLA prints and we do not."""
