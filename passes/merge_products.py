"""Products of one value with several weights made one product: queries, keys and values of attention are such.

    a = x A + p,  b = x B + q      becomes      c = x [A B] + [p q],  a = c[:, :m],  b = c[:, m:]

A GPU then reads x once and starts one kernel, which has more tiles to be busy with. The parts of c are read where they
lie (`fuse/views.py`), so only products are merged whose results go to products, through views.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import Array, ElementType
from onnxla.passes.fuse.views import is_view
from onnxla.passes.lower_contractions import names_of
from onnxla.passes.pass_base import ComputationPass


class MergeProducts(ComputationPass):
    """Merge dots of one value with constant matrices, where other dots read all of their results.

    Those of the nodes `apart` stay alone: a merged product is rounded as a whole, or not at all.
    """

    name = "merge-products"

    def __init__(self, apart: Iterable[str] = ()) -> None:
        super().__init__()
        self.apart = frozenset(apart)

    def run_on(self, computation: Computation) -> bool:
        groups: dict[tuple[Instruction, Dot], list[Instruction]] = {}
        for instruction in computation.instructions():
            alone = instruction is computation.root or not self.apart.isdisjoint(names_of(instruction))
            if _is_of_weights(instruction) and not alone:
                assert isinstance(instruction.op, Dot)
                groups.setdefault((instruction.operands[0], instruction.op), []).append(instruction)
        found = [[b for b in map(_Branch.of, dots) if b is not None] for dots in groups.values()]
        merged = [branches for branches in found if len(branches) > 1]
        for branches in merged:
            _merge(computation, branches)
        if merged:
            self.count("merged", sum(map(len, merged)))
        return bool(merged)


def _is_of_weights(instruction: Instruction) -> bool:
    """A dot of floats with a constant matrix that nothing else reads."""
    op = instruction.op
    if not isinstance(op, Dot) or op.lhs_batch or len(op.lhs_contracting) != 1:
        return False
    lhs, rhs = instruction.operands
    if not isinstance(rhs.op, Constant) or rhs.tensor_type.rank != 2 or len(rhs.users) != 1:
        return False
    return op.element.is_float and not isinstance(lhs.op, Constant) and lhs.tensor_type.size > 0


@dataclass(frozen=True)
class _Branch:
    """One of the products, and what is done to each of its columns."""

    dot: Instruction
    bias: Array | None
    """Added to columns, then `scale` multiplies them, then they become `converted`."""
    scale: Array | None
    converted: ElementType | None
    end: Instruction

    @staticmethod
    def of(dot: Instruction) -> "_Branch | None":
        """None where anything but dots reads the result."""
        end = dot
        bias, end = _by_column(end, "add")
        scale, end = _by_column(end, "multiply")
        converted = None
        user = _only_user(end)
        if user is not None and isinstance(user.op, Convert):
            converted, end = user.op.element, user
        return _Branch(dot, bias, scale, converted, end) if _goes_to_dots(end) else None

    @property
    def columns(self) -> int:
        return self.dot.shape[-1]


def _only_user(value: Instruction) -> Instruction | None:
    return next(iter(value.users)) if len(value.users) == 1 else None


def _by_column(value: Instruction, opcode: str) -> tuple[Array | None, Instruction]:
    """The numbers that the only user of a value adds to, or multiplies, its columns with, and that user; None and the
    value itself where it does no such thing."""
    user = _only_user(value)
    if user is None or user.op.opcode != opcode:
        return None, value
    others = [o for o in user.operands if o is not value]
    if len(others) != 1 or not isinstance(others[0].op, Broadcast):
        return None, value
    (spread,), (source,) = others, others[0].operands
    assert isinstance(spread.op, Broadcast)
    if not isinstance(source.op, Constant) or spread.op.dimensions not in ((), (len(value.shape) - 1,)):
        return None, value
    return np.broadcast_to(source.op.literal.array, value.shape[-1:]), user


def _goes_to_dots(value: Instruction, steps: int = 8) -> bool:
    """Whether dots read everything that is made of a value, through views."""
    return bool(value.users) and all(
        isinstance(user.op, Dot) or (steps > 0 and is_view(user) and _goes_to_dots(user, steps - 1))
        for user in value.users
    )


def _merge(computation: Computation, branches: Sequence[_Branch]) -> None:
    first = branches[0]
    op, element = first.dot.op, first.dot.tensor_type.element
    assert isinstance(op, Dot)
    free = 1 - op.rhs_contracting[0]
    b = Builder(source=first.end.source)
    weights = [branch.dot.operands[1].op for branch in branches]
    matrix = np.concatenate([w.literal.array for w in weights if isinstance(w, Constant)], axis=free)
    whole = b.emit(op, first.dot.operands[0], b.constant(matrix, first.dot.operands[1].tensor_type.element))

    def joined(part: Callable[[_Branch], Array | None], neutral: float) -> Array | None:
        """The numbers of all branches, those without any left as they are; None where there are none at all."""
        if all(part(branch) is None for branch in branches):
            return None
        full = [np.full(branch.columns, neutral, element.dtype) for branch in branches]
        given = [part(branch) for branch in branches]
        return np.concatenate([f if g is None else g for f, g in zip(full, given, strict=True)])

    last = [len(whole.shape) - 1]
    bias, scale = joined(lambda branch: branch.bias, -0.0), joined(lambda branch: branch.scale, 1.0)
    if bias is not None:
        whole = b.add(whole, b.broadcast(b.constant(bias, element), whole.shape, last))
    if scale is not None:
        whole = b.multiply(whole, b.broadcast(b.constant(scale, element), whole.shape, last))
    kinds = {branch.converted for branch in branches}
    together = kinds.pop() if len(kinds) == 1 else None
    if together is not None:
        whole = b.convert(whole, together)
    start = 0
    for branch in branches:
        starts, limits = [0] * len(whole.shape), list(whole.shape)
        starts[-1], limits[-1] = start, start + branch.columns
        start += branch.columns
        part = b.slice(whole, starts, limits)
        if together is None and branch.converted is not None:
            part = b.convert(part, branch.converted)
        computation.replace(branch.end, part)
