"""The walk from a value back to those it is derived by."""

from collections.abc import Sequence

from onnxla.hlo.builder import Builder
from onnxla.hlo.derivatives import elementwise, movement, sums, windows  # noqa: F401  they register rules
from onnxla.hlo.derivatives.rule import RULES, NoDerivativeError, Parts, derivative
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.structural import Tuple
from onnxla.hlo.types import TensorType, TupleType


class UnderivableError(Exception):
    """`found`: instructions on the way that have no derivative, each with the reason."""

    def __init__(self, found: Sequence[tuple[Instruction, str]]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(cause for _, cause in found))


def derivatives(b: Builder, y: Instruction, xs: Sequence[Instruction]) -> list[Instruction]:
    """d(sum of y)/dx for each x, of x's type; zeros where y does not depend on it through floats.

    Raises UnderivableError with everything on the way that has no derivative.
    """
    received: dict[Instruction, Instruction] = {y: b.full_like(y, 1)}
    failed: list[tuple[Instruction, str]] = []
    for value in reversed(between(xs, y)):
        if value not in received:
            continue
        rule = RULES.get(value.op.opcode)
        try:
            if rule is None or (isinstance(value.type, TupleType) and not isinstance(value.op, Tuple)):
                raise NoDerivativeError(f"the derivative of {value.op.opcode} is not known")
            parts = rule(b, value, received[value])
        except NoDerivativeError as error:
            failed.append((value, str(error)))
            # no derivative arrives behind it, but what else has none is wanted too
            parts = [_nothing(b, operand) for operand in value.operands]
        for operand, part in zip(value.operands, parts, strict=True):
            if part is not None and is_continuous(operand):
                so_far = received.get(operand)
                received[operand] = part if so_far is None else b.add(so_far, part)
    if failed:
        raise UnderivableError(failed)
    return [received.get(x, b.full_like(x, 0)) for x in xs]


@derivative("get-tuple-element", "tuple")
def several(b: Builder, y: Instruction, g: Instruction) -> Parts:
    """Operations with several results have no derivative: what is passed on says only that one is wanted."""
    return [_nothing(b, operand) for operand in y.operands]


def _nothing(b: Builder, value: Instruction) -> Instruction:
    """Zeros; of a tuple one for the whole."""
    return b.full_like(value, 0) if isinstance(value.type, TensorType) else b.constant(0)


def between(xs: Sequence[Instruction], y: Instruction) -> list[Instruction]:
    """What `y` is computed from that depends on one of `xs` through floats, operands first; without `xs` themselves."""
    depends = dict.fromkeys(xs, True)
    order: list[Instruction] = []
    stack = [(y, False)]
    while stack:
        value, expanded = stack.pop()
        if value in depends:
            continue
        if not expanded:
            stack += [(value, True), *((o, False) for o in value.operands)]
            continue
        depends[value] = is_continuous(value) and any(depends[o] for o in value.operands)
        if depends[value]:
            order.append(value)
    return order


def is_continuous(value: Instruction) -> bool:
    """Whether small changes can show in it: floats, and tuples, which may hold some."""
    if isinstance(value.type, TupleType):
        return True
    return isinstance(value.type, TensorType) and (value.type.element.is_float or value.type.element.is_complex)
