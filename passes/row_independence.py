"""Are the rows of a batch independent of one another and of their number? Then a batch may be padded with other rows.

Two imports of one model are compared, for n and for m < n rows. `prove_rows` walks both at once: it follows where the
rows are from the inputs through every operation to the outputs (`row_rules.py`), and requires the two programs to be
the same but for the sizes of those dimensions. Then the first m rows that the larger program computes from m rows and
any others are those that the smaller one computes. Nothing is taken on trust: an operation without a rule, a constant
or an attribute that depends on the number of rows, or rows that meet, is a refusal that names instruction and node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from onnxla.errors import CompileError, Problem
from onnxla.hlo.fingerprint import fingerprint
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.control_flow import Call, Conditional, Fusion, While
from onnxla.hlo.ops.structural import GetTupleElement, Parameter, Tuple
from onnxla.hlo.types import TensorType, TupleType, Type
from onnxla.passes.row_rules import SIZED, Sizes, is_free, rows_of
from onnxla.passes.rows import Even, Rows, RowsMix, State, joined


def prove_rows(
    large: Module, small: Module, sizes: Sizes, inputs: Mapping[int, int], what: str
) -> tuple[Rows | None, ...]:
    """Where the rows are in each result of `large`; None for one that all rows share.

    `inputs` says in which dimension of which parameter the rows are; `what` is the name of that dimension in messages.
    Raises CompileError, naming the first instruction for which nothing is proven.
    """
    proof = _Proof(sizes, what)
    given: list[State] = [Rows(inputs[k]) if k in inputs else None for k in range(len(large.entry.parameters))]
    result = proof.computation(large.entry, small.entry, given)
    root = large.entry.root
    types = root.type.elements if isinstance(root.type, TupleType) else (root.type,)
    states = result if isinstance(result, tuple) else (result,)
    outputs: list[Rows | None] = []
    for type, state in zip(types, states, strict=True):
        if isinstance(state, tuple) or not isinstance(type, TensorType):
            raise proof.refusal(root, "an output is a tuple")
        if isinstance(state, Even):
            state = Rows(state.dimension, 1, type.shape[state.dimension] // sizes.large)
        outputs.append(state)
    return tuple(outputs)


class _Proof:
    def __init__(self, sizes: Sizes, what: str) -> None:
        self.sizes = sizes
        self.what = what

    def refusal(self, instruction: Instruction, reason: str) -> CompileError:
        """Names the instruction, and the node that it or what reads it comes from."""
        node = instruction.source or next((u.source for u in instruction.users if u.source), None)
        return CompileError(
            [
                Problem(
                    CompileError,
                    f"batches cannot be padded along {self.what}: {instruction.op.opcode} is in the way, {reason}",
                    node,
                    details=(("in", repr(instruction)),),
                    hint="leave pad_to_bucket out; other sizes then need code of their own",
                )
            ]
        )

    def computation(self, large: Computation, small: Computation, given: Sequence[State]) -> State:
        """The state of the root. Raises CompileError where nothing is proven."""
        order, twins = large.instructions(), small.instructions()
        if len(order) != len(twins):
            raise self.refusal(large.root, f"the program for {self.sizes.small} rows has other operations")
        place = {instruction: k for k, instruction in enumerate(order)}
        twin_place = {instruction: k for k, instruction in enumerate(twins)}
        states: dict[Instruction, State] = dict(zip(large.parameters, given, strict=True))
        for one, twin in zip(order, twins, strict=True):
            try:
                if [place[o] for o in one.operands] != [twin_place[o] for o in twin.operands]:
                    raise RowsMix("the number of rows decides what it reads")
                self.require_equal_attributes(one, twin)
                if one not in states:
                    states[one] = self.state(one, twin, [states[o] for o in one.operands])
                self.require_shape(one.type, twin.type, states[one])
            except RowsMix as reason:
                raise self.refusal(one, str(reason)) from None
        if place[large.root] != twin_place[small.root]:
            raise self.refusal(large.root, "the number of rows decides what comes out")
        return states[large.root]

    def state(self, one: Instruction, twin: Instruction, states: Sequence[State]) -> State:
        op, other = one.op, twin.op
        match op:
            case Tuple():
                return tuple(states)
            case GetTupleElement():
                whole = states[0]
                if not isinstance(whole, tuple):
                    raise RowsMix("it takes apart what is no tuple")
                return whole[op.index]
            case Call(to_apply=body):
                assert isinstance(other, Call)
                return self.computation(body, other.to_apply, states)
            case Fusion(calls=body):
                assert isinstance(other, Fusion)
                return self.computation(body, other.calls, states)
            case While():
                assert isinstance(other, While)
                return self.loop(op, other, states[0])
            case Conditional():
                assert isinstance(other, Conditional)
                return self.choice(op, other, states)
        same = [fingerprint(Module("", c)) for c in op.computations] == [
            fingerprint(Module("", c)) for c in other.computations
        ]
        if not same:
            raise RowsMix("the number of rows decides what it applies")
        return rows_of(one, twin, states, self.sizes)

    def loop(self, op: While, other: While, state: State) -> State:
        """What holds before and after every round; whether there is another may not depend on rows."""
        while True:
            if not is_free(self.computation(op.condition, other.condition, [state])):
                raise RowsMix("how often it runs depends on rows")
            after = joined(state, self.computation(op.body, other.body, [state]))
            if after == state:
                return state
            state = after

    def choice(self, op: Conditional, other: Conditional, states: Sequence[State]) -> State:
        if not is_free(states[0]):
            raise RowsMix("what it chooses depends on rows")
        results = [self.computation(a, b, [s]) for a, b, s in zip(op.branches, other.branches, states[1:], strict=True)]
        state = results[0]
        for result in results[1:]:
            state = joined(state, result)
        return state

    def require_equal_attributes(self, one: Instruction, twin: Instruction) -> None:
        """All but those that shapes decide, or that rules compare."""
        if type(one.op) is not type(twin.op):
            raise RowsMix(f"with {self.sizes.small} rows {twin.op.opcode} is in its place")
        if isinstance(one.op, Parameter) and isinstance(twin.op, Parameter):
            if one.op.number != twin.op.number:
                raise RowsMix("the number of rows decides which input it is")
            return
        for field in fields(one.op):
            value, other = getattr(one.op, field.name), getattr(twin.op, field.name)
            is_computation = isinstance(value, Computation) or (
                isinstance(value, tuple) and any(isinstance(v, Computation) for v in value)
            )
            if field.name not in SIZED and not is_computation and value != other:
                raise RowsMix(f"its {field.name} depends on the number of rows")

    def require_shape(self, one: Type, twin: Type, state: State) -> None:
        """The sizes that differ are those of the rows, and they are as `state` says."""
        if isinstance(one, TupleType) or isinstance(twin, TupleType) or isinstance(state, tuple):
            if not (isinstance(one, TupleType) and isinstance(twin, TupleType) and isinstance(state, tuple)):
                raise RowsMix("it is a tuple of unknown parts")
            for parts in zip(one.elements, twin.elements, state, strict=True):
                self.require_shape(*parts)
            return
        if one.element is not twin.element or one.rank != twin.rank:
            raise RowsMix("the number of rows decides its type")
        for d, (n, m) in enumerate(zip(one.shape, twin.shape, strict=True)):
            if state is None or d != state.dimension:
                if n != m:
                    raise RowsMix(f"its dimension {d} depends on the number of rows")
            elif isinstance(state, Rows):
                if (n, m) != (state.size(self.sizes.large), state.size(self.sizes.small)):
                    raise RowsMix(f"its dimension {d} does not grow with the rows")
            elif n % self.sizes.large or n // self.sizes.large * self.sizes.small != m:
                raise RowsMix(f"its dimension {d} does not grow with the rows")
