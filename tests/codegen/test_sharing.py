"""Instructions that differ in their data alone share a lowering; what a kernel contains keeps them apart."""

import numpy as np

from onnxla.codegen.sharing import lowering_key
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.types import F32, TensorType

VECTOR = TensorType(F32, (8,))


def fusion(b: Builder, x: Instruction, weight: Instruction, factor: float) -> Instruction:
    body = Builder("body")
    p, q = body.parameter(x.type), body.parameter(weight.type)
    scaled = body.multiply(p, body.full_like(p, factor))
    return b.emit(Fusion("kLoop", body.build(body.add(scaled, q))), x, weight)


def test_the_values_of_large_operands_do_not_matter() -> None:
    b = Builder()
    x, y = b.parameter(VECTOR), b.parameter(VECTOR)
    weights = [b.constant(np.full(8, v, np.float32)) for v in (1, 2)]
    keys = {lowering_key(fusion(b, o, w, 3.0)) for o in (x, y) for w in weights}
    assert len(keys) == 1


def test_what_kernels_contain_matters() -> None:
    b = Builder()
    x, wide = b.parameter(VECTOR), b.parameter(TensorType(F32, (16,)))
    weight = b.constant(np.ones(8, np.float32))
    one, two = (b.constant(np.full(1, v, np.float32)) for v in (1, 2))
    single = b.reshape(one, (1,))
    different = [
        fusion(b, x, weight, 3.0),
        fusion(b, x, weight, 4.0),
        fusion(b, x, x, 3.0),
        b.add(x, weight),
        b.add(x, x),
        b.add(wide, wide),
        b.subtract(x, weight),
        b.add(one, single),
        b.add(two, single),
    ]
    assert len({lowering_key(i) for i in different}) == len(different)
