"""Faults to plant: one line of the compiler made wrong, and what a search must say of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from onnxla.codegen.kernels import bounded, dot, elementwise, loop, sums
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Value
from onnxla.frontends.onnx import registry
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.structural import Constant
from onnxla.passes import constant_folding
from onnxla.passes.fuse import emit
from onnxla.passes.rewrite import NoMatch, RuleTable
from onnxla.passes.simplify.arithmetic import ARITHMETIC
from onnxla.passes.simplify.reduction import REDUCTION
from onnxla.passes.simplify.shape import SHAPE

Patch = pytest.MonkeyPatch
REFUSED = NoMatch("not what is planted")


@dataclass(frozen=True)
class Planted:
    """A fault, the node that it shows at, and who is to be blamed."""

    plant: Callable[[Patch], None]
    part: str
    name: str
    """What the culprit's name begins with."""
    node: str
    detail: str = ""


def change_rule(table: RuleTable, name: str, wrong: Callable[..., Any]) -> Callable[[Patch], None]:
    """Another replacement for what a rule matches."""

    def plant(patch: Patch) -> None:
        rules = [
            replace(r, replace=wrong, arguments=frozenset(wrong.__code__.co_varnames[: wrong.__code__.co_argcount]))
            if r.name == name
            else r
            for r in table.rules
        ]
        assert rules != table.rules
        patch.setattr(table, "rules", rules)

    return plant


def _sign_is_lost(b: Any, x: Instruction) -> Instruction:
    return b.negate(x)  # type: ignore[no-any-return]


def _second_transpose_is_lost(b: Any, x: Instruction, p: Any, q: Any) -> Instruction:
    return b.transpose(x, p)  # type: ignore[no-any-return]


def _other_axis(b: Any, root: Instruction) -> Any:
    source = root.operands[0]
    if source.op.opcode != "transpose":
        return REFUSED
    permutation, op = source.op.permutation, root.op  # type: ignore[attr-defined]
    other = {2: 3, 3: 2}
    dimensions = [other.get(permutation[d], permutation[d]) for d in op.dimensions]  # type: ignore[attr-defined]
    narrow = b.reduce([source.operands[0]], [root.operands[1]], dimensions, op.to_apply)  # type: ignore[attr-defined]
    kept = [permutation[d] for d in range(len(permutation)) if d not in op.dimensions]  # type: ignore[attr-defined]
    return b.transpose(narrow, [sorted(kept).index(d) for d in kept])


def _folded_too_much(patch: Patch) -> None:
    fold = constant_folding.FoldConstants._fold

    def wrong(self: Any, computation: Any, instruction: Instruction) -> bool:
        value = self.evaluator.value(instruction)
        if value is None or value.dtype != np.float32:
            return fold(self, computation, instruction)
        computation.replace(instruction, Instruction(Constant(Literal(value + np.float32(1))), name=instruction.name))
        return True

    patch.setattr(constant_folding.FoldConstants, "_fold", wrong)


def _fusion_drops_tanh(patch: Patch) -> None:
    def made(op: Any, operands: Any, **names: Any) -> Instruction:
        return operands[0] if op.opcode == "tanh" else Instruction(op, operands, **names)

    patch.setattr(emit, "Instruction", made)


def _exponential_of_the_tail(patch: Patch) -> None:
    right, rest = vars(bounded)["exponential"], loop._emit_rest

    def emit_rest(*arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(bounded, "exponential", lambda b, x: b.add(right(b, x), b.const(0.5, x.element)))
            rest(*arguments)

    patch.setattr(loop, "_emit_rest", emit_rest)


def _sum_starts_at_one(patch: Patch) -> None:
    right = sums._initial

    def wrong(e: Any, inits: Any, index: Any) -> list[Value]:
        return [e.b.add(v, e.b.const(1, v.element)) for v in right(e, inits, index)]

    patch.setattr(sums, "_initial", wrong)


def _last_column_of_a_tile(patch: Patch) -> None:
    right = vars(dot)["pack_panels"]

    def wrong(array: Any, width: int, *rest: Any) -> Any:
        if array.shape[-1] % width:
            array = np.array(array)
            array[..., -1] = 0
        return right(array, width, *rest)

    patch.setattr(dot, "pack_panels", wrong)


def _select_the_other(patch: Patch) -> None:
    def wrong(b: KernelBuilder, element: Any, operands: list[Value]) -> Value:
        condition, on_true, on_false = operands
        return b.select(condition, on_false, on_true)

    patch.setitem(elementwise._OPERATIONS, "select", wrong)


def _no_negative_zero(patch: Patch) -> None:
    def wrong(b: KernelBuilder, element: Any, operands: list[Value]) -> Value:
        return b.sub(b.const(0, operands[0].element), operands[0])

    patch.setitem(elementwise._OPERATIONS, "negate", wrong)


def _import_rule(name: str, wrong: Callable[..., Any]) -> Callable[[Patch], None]:
    def replaced(entry: registry.RuleEntry) -> registry.RuleEntry:
        return replace(entry, rule=lambda node, b: wrong(entry.rule, node, b))

    def plant(patch: Patch) -> None:
        patch.setitem(registry._RULES, ("", name), [replaced(entry) for entry in registry._RULES["", name]])

    return plant


PASSES = {
    "a rule changes a sign": Planted(
        change_rule(ARITHMETIC, "negate_twice", _sign_is_lost), "pass", "simplify", "/positive", "negate_twice"
    ),
    "a rule loses a permutation": Planted(
        change_rule(SHAPE, "merge_transposes", _second_transpose_is_lost),
        "pass",
        "simplify",
        "/swapped",
        "merge_transposes",
    ),
    "a rule takes the wrong axis": Planted(
        change_rule(REDUCTION, "reduce_of_transpose", _other_axis),
        "pass",
        "simplify",
        "/column",
        "reduce_of_transpose",
    ),
    "a folded constant is off": Planted(_folded_too_much, "pass", "fold-constants", "/scale"),
    "a fusion drops an operation": Planted(_fusion_drops_tanh, "pass", "fuse-instructions", "/squashed"),
}
KERNELS = {
    "exp is wrong in the tail of a vector": Planted(_exponential_of_the_tail, "kernel", "exponential", "/growing"),
    "a sum starts at one": Planted(_sum_starts_at_one, "kernel", "reduce", "/total"),
    "the edge of a tile is lost": Planted(_last_column_of_a_tile, "kernel", "dot", "/product"),
    "select takes the other": Planted(_select_the_other, "kernel", "select", "/chosen"),
    "minus zero is zero": Planted(_no_negative_zero, "kernel", "negate", "/inverse"),
}
RULES = {
    "the import of Tanh adds": Planted(
        _import_rule("Tanh", lambda right, n, b: b.add(*[right(n, b)] * 2)), "import", "Tanh", "/squashed"
    ),
    "the import of Greater is LessOrEqual": Planted(
        _import_rule("Greater", lambda right, n, b: b.not_(right(n, b))), "import", "Greater", "/flag"
    ),
}
