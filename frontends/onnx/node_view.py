"""What a rule sees of its node: checked reads of inputs, attributes and constant operands.

Every read either gives what it promises or raises a problem that names the node, so a rule says
what it needs and nothing about protobuf.
"""

from collections.abc import Mapping, Sequence
from typing import NoReturn

from onnx import AttributeProto, NodeProto

from onnxla.errors import CompileError, DynamicShapeError, Problem, ShapeError, SourceNode, UnsupportedOpError
from onnxla.frontends.onnx.failed_values import Binding
from onnxla.frontends.onnx.host import Host
from onnxla.frontends.onnx.node_attributes import Int, NodeAttributes
from onnxla.frontends.onnx.values import ChosenStrings, OptionalValue, SequenceValue, StringConstant, Value, describe
from onnxla.frontends.poison import Poison
from onnxla.frontends.problems import FOR_ONNX, Poisoned, ProblemFound, text_problem
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array

MOST_PIECES = 1 << 13
"""Instructions that a rule writes out for one node."""

MOST_OF_A_TABLE = 1 << 27
"""Elements that a rule writes out, of positions or weights: half a gigabyte or so."""


class NodeView(NodeAttributes):
    """One node of the model while its rule runs."""

    def __init__(
        self,
        node: NodeProto,
        source: SourceNode,
        inputs: Sequence[Binding],
        attributes: Mapping[str, AttributeProto],
        host: Host,
    ) -> None:
        super().__init__(attributes, host)
        self.source = source
        self._node = node
        self._inputs = tuple(inputs)

    @property
    def op_type(self) -> str:
        return self._node.op_type

    @property
    def opset(self) -> Int:
        """The version of the operator's domain that the model (or the function around) imports."""
        return self.source.opset

    # Inputs and outputs

    @property
    def input_count(self) -> Int:
        """Inputs written down, the empty ones between them included, trailing empty ones not."""
        return len(self._inputs)

    @property
    def output_count(self) -> Int:
        """Outputs written down, the empty ones included."""
        return len(self._node.output)

    def has_input(self, i: Int) -> bool:
        return i < len(self._inputs) and self._inputs[i] is not None

    def has_output(self, i: Int) -> bool:
        """Whether output `i` is named, and so may be read."""
        return i < len(self._node.output) and self._node.output[i] != ""

    def input_name(self, i: Int) -> str:
        """The name that the graph gives to input `i`."""
        return str(self._node.input[i])

    def value(self, i: Int) -> Value:
        """Input `i`, which must be there: a tensor, sequence, optional or constant string tensor.

        Raises Poisoned, as every read of inputs, where it failed to import.
        """
        value = self._inputs[i] if i < len(self._inputs) else None
        if isinstance(value, Poison):
            raise Poisoned
        if value is None:
            self.malformed(f"input {i} is missing")
        return value

    def input(self, i: Int) -> Instruction:
        """Input `i`, which must be there and be a tensor."""
        value = self.value(i)
        if isinstance(value, OptionalValue) and isinstance(value.value, Instruction):
            return value.value
        if not isinstance(value, Instruction):
            self.require_closed(value)
            self.unsupported(
                f"input {self.input_name(i)} is a {describe(value)}, where a tensor of numbers was expected"
            )
        return value

    def optional_input(self, i: Int) -> Instruction | None:
        """Input `i`, or None where it is left out."""
        return self.input(i) if self.has_input(i) else None

    def inputs(self) -> list[Instruction]:
        """All inputs, each of which must be there and be a tensor."""
        return [self.input(i) for i in range(len(self._inputs))]

    def sequence(self, i: Int) -> SequenceValue:
        """Input `i`, which must be a sequence."""
        value = self.value(i)
        if isinstance(value, OptionalValue) and isinstance(value.value, SequenceValue):
            return value.value
        if not isinstance(value, SequenceValue):
            self.malformed(f"input {self.input_name(i)} is {describe(value)}, where a sequence was expected")
        return value

    def strings_constant(self, i: Int) -> Array:
        """Input `i`, which must be a constant tensor of strings, as an array of `str` objects."""
        value = self.value(i)
        self.require_closed(value)
        if not isinstance(value, StringConstant):
            self.malformed(f"input {self.input_name(i)} is {describe(value)}, where strings were expected")
        return value.array

    def require_closed(self, value: Value) -> None:
        """Raise a problem where `value` may be any string of an input: its value while compiling would solve it."""
        if isinstance(value, ChosenStrings) and value.input:
            raise ProblemFound(text_problem(value.input, self.source))

    def _failed(self, i: Int) -> bool:
        return i < len(self._inputs) and isinstance(self._inputs[i], Poison)

    def failed_but_computed(self, i: Int) -> bool:
        """Whether input `i` failed to import, and a run would compute it, whatever its type."""
        return i < len(self._inputs) and self._inputs[i] == Poison(computed=True)

    # Values known while compiling

    def known(self, i: Int) -> Array | None:
        """The value of input `i` where constant propagation knows it; None where not, or left out."""
        return self.host.known_value(self.input(i)) if self.has_input(i) else None

    def constant(self, i: Int) -> Array:
        """The value of input `i` by constant propagation. Where it is not known a DynamicShapeError
        problem is raised with the chain to the graph inputs whose values would be needed."""
        instruction = self.input(i)
        value = self.host.known_value(instruction)
        if value is None:
            role = f"input {i} ({self.input_name(i)}) of {self.op_type}"
            raise ProblemFound(self.host.blame(instruction, role, self.source))
        return value

    def optional_constant(self, i: Int) -> Array | None:
        return self.constant(i) if self.has_input(i) else None

    def constant_ints(self, i: Int) -> tuple[Int, ...]:
        """`constant(i)` as Python integers, flattened. The tensor must be of an integer type."""
        value = self.constant(i)
        if value.dtype.kind not in "iu":
            self.malformed(f"input {self.input_name(i)} is {describe(self.input(i))}; integers were expected")
        return tuple(int(n) for n in value.reshape(-1))

    def optional_constant_ints(self, i: Int) -> tuple[Int, ...] | None:
        return self.constant_ints(i) if self.has_input(i) else None

    # Subgraphs

    def import_body(
        self,
        name: str,
        arguments: Sequence[Value],
        builder: Builder,
        captured: Mapping[str, Binding] | None = None,
    ) -> list[Value]:
        """Inline the subgraph attribute `name` into `builder`, its inputs standing for `arguments`.

        With the builder of another computation, `captured` maps every outer name that the body
        reads (see `captures`) to its stand-in there.
        """
        return self.host.import_body(self.graph(name), arguments, builder, captured)

    def captures(self, name: str) -> dict[str, Value | Poison]:
        """The values of the graph around that the subgraph attribute `name` reads."""
        return self.host.captures(self.graph(name))

    # Ways to stop

    def unsupported(self, cause: str, hint: str = "") -> NoReturn:
        self._stop(UnsupportedOpError, cause, hint)

    def require_pieces(self, count: Int) -> None:
        """A problem where a rule would write out a tensor piece by piece, and they are too many."""
        if count > MOST_PIECES:
            self.unsupported(f"a tensor in {count} pieces", f"up to {MOST_PIECES} are written out")

    def require_table(self, elements: Int) -> None:
        """A problem where a rule would write out a table of too many elements: a shape costs a model nothing."""
        if elements > MOST_OF_A_TABLE:
            self.unsupported(f"a table of {elements} elements", f"up to {MOST_OF_A_TABLE} are written out")

    def shape_error(self, cause: str, hint: str = "") -> NoReturn:
        """Shapes or element types do not fit together."""
        self._stop(ShapeError, cause, hint)

    def dynamic_shape(self, cause: str, hint: str = "", *, data: Int | None = None) -> NoReturn:
        """The shape of an output depends on data: on input `data`, whose chain to the graph inputs is told."""
        details = self.details()
        if data is not None and not self._failed(data):
            blame = self.host.blame(self.input(data), "", self.source)
            details += blame.details
            if blame.needs_constants:
                given = ", ".join(f'"{name}": ...' for name in blame.needs_constants)
                hint = f"give the value while compiling, constants={{{given}}}{f'; or {hint}' if hint else ''}"
        raise ProblemFound(Problem(DynamicShapeError, cause, self.source, details, hint or FOR_ONNX[DynamicShapeError]))

    def malformed(self, cause: str) -> NoReturn:
        self._stop(CompileError, f"{self.op_type}: {cause}", "")

    def _stop(self, kind: type[CompileError], cause: str, hint: str) -> NoReturn:
        raise ProblemFound(Problem(kind, cause, self.source, self.details(), hint or FOR_ONNX[kind]))

    def details(self) -> tuple[tuple[str, str], ...]:
        """The inputs with their types, as a problem lists them."""
        return tuple(
            ("input", f"{name} {describe(value)}")
            for name, value in zip(self._node.input, self._inputs, strict=False)
            if value is not None
        )
