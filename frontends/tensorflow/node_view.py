"""What a rule sees of its node: checked reads of inputs, attributes and constant operands.

Every read either gives what it promises or raises a problem that names the node, so a rule says
what it needs and nothing about protobuf.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias, overload

from onnxla.errors import CompileError, DynamicShapeError, HloError, Problem, ShapeError, SourceNode, UnsupportedOpError
from onnxla.frontends.host import ImportHost
from onnxla.frontends.poison import Poison
from onnxla.frontends.problems import FOR_TENSORFLOW, Poisoned, ProblemFound
from onnxla.frontends.tensorflow.element_types import code_name, element_of_code
from onnxla.frontends.tensorflow.graph import Body, Node
from onnxla.frontends.tensorflow.state import State
from onnxla.frontends.tensorflow.tables import Table
from onnxla.frontends.tensorflow.tensors import shape_of, tensor_array
from onnxla.frontends.tensorflow.values import Binding, Handle, ListValue, StringConstant, Value, describe
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array, ElementType

Int: TypeAlias = int
Float: TypeAlias = float
Bool: TypeAlias = bool
PartialShape: TypeAlias = "tuple[Int | None, ...] | None"
"""A shape with None for unknown sizes, or None where the rank is unknown."""

_REQUIRED: Any = object()
"""The default of a read that must succeed."""


class Host(ImportHost, Protocol):
    """What a node view asks of the importer that walks the graph around it."""

    def function(self, name: str) -> Body | None:
        """A function of the model's library."""

    def table(self, name: str) -> Table | None:
        """What is in a hash table; None where that is not known."""

    def import_body(
        self, body: Body, arguments: Sequence[Binding], builder: Builder, state: State, attributes: Mapping[str, Any]
    ) -> list[Value]:
        """Import a function's nodes into `builder`, its arguments standing for `arguments`.

        Raises Poisoned where one of its results failed.
        """

    @property
    def state(self) -> State:
        """The variables as this computation sees them."""


class NodeView:
    """One node of the model while its rule runs."""

    def __init__(
        self, node: Node, source: SourceNode, inputs: Sequence[Binding], outer: Mapping[str, Any], host: Host
    ) -> None:
        self.source = source
        self.host = host
        self.node = node
        self._inputs = tuple(inputs)
        self._outer = outer
        """Attributes of the call of the function around, which placeholders name."""

    @property
    def op_type(self) -> str:
        return self.node.op

    # Inputs

    @property
    def input_count(self) -> Int:
        return len(self._inputs)

    def input_name(self, i: Int) -> str:
        """The name that the graph gives to input `i`."""
        return str(self.node.inputs[i]) if i < len(self.node.inputs) else f"input {i}"

    def value(self, i: Int) -> Value:
        """Input `i`, which must be there: a tensor, list, handle or constant string tensor.

        Raises Poisoned, as every read of inputs but `arguments`, where it failed to import.
        """
        if not -len(self._inputs) <= i < len(self._inputs):
            self._malformed(f"input {i} is missing")
        value = self._inputs[i]
        if isinstance(value, Poison):
            raise Poisoned
        return value

    def values(self) -> tuple[Value, ...]:
        """All inputs."""
        return tuple(self.value(i) for i in range(len(self._inputs)))

    def arguments(self) -> tuple[Binding, ...]:
        """All inputs, those that failed among them: for functions, which are imported for their problems even so."""
        return self._inputs

    def failed_but_computed(self, i: Int) -> Bool:
        """Whether input `i` failed to import, and a run would compute it, whatever its type."""
        return i < len(self._inputs) and self._inputs[i] == Poison(computed=True)

    def input(self, i: Int) -> Instruction:
        """Input `i`, which must be there and be a tensor of numbers."""
        value = self.value(i)
        if isinstance(value, Handle) and value.is_reference:
            return self.host.state.read(value.name)
        if not isinstance(value, Instruction):
            self.unsupported(f"input {self.input_name(i)} is a {describe(value)}, where numbers were expected")
        return value

    def inputs(self, first: Int = 0) -> list[Instruction]:
        """All inputs from number `first` on, each of which must be a tensor of numbers."""
        return [self.input(i) for i in range(first, len(self._inputs))]

    def handle(self, i: Int) -> str:
        """The name of the variable that input `i` stands for."""
        value = self.value(i)
        if not isinstance(value, Handle):
            self.unsupported(f"input {self.input_name(i)} is a {describe(value)}, where a variable was expected")
        return value.name

    def tensor_list(self, i: Int) -> ListValue:
        """Input `i`, which must be a list of tensors."""
        value = self.value(i)
        if not isinstance(value, ListValue):
            self.unsupported(f"input {self.input_name(i)} is a {describe(value)}, where a list was expected")
        return value

    # Values known while compiling

    def known(self, i: Int) -> Array | None:
        """The value of input `i` where constant propagation knows it."""
        return self.host.known_value(self.input(i))

    def constant(self, i: Int) -> Array:
        """The value of input `i` by constant propagation. Where it is not known a DynamicShapeError
        problem is raised with the chain to the graph inputs whose values would be needed."""
        value = self.value(i)
        if isinstance(value, StringConstant):
            return value.array
        known = self.host.known_value(self.input(i))
        if known is None:
            role = f"input {i} ({self.input_name(i)}) of {self.op_type}"
            raise ProblemFound(self.host.blame(self.input(i), role, self.source))
        return known

    def constant_ints(self, i: Int) -> tuple[Int, ...]:
        """`constant(i)` as Python integers, flattened. The tensor must be of an integer type."""
        value = self.constant(i)
        if value.dtype.kind not in "iu":
            self._malformed(f"input {self.input_name(i)} is {value.dtype}; integers were expected")
        return tuple(int(n) for n in value.reshape(-1))

    def constant_int(self, i: Int) -> Int:
        """`constant_ints(i)`, of which there must be one."""
        values = self.constant_ints(i)
        if len(values) != 1:
            self.shape_error(f"input {self.input_name(i)} has {len(values)} elements; one was expected")
        return values[0]

    # Attributes

    def has(self, name: str) -> Bool:
        """Whether the attribute is written down."""
        return name in self.node.attributes

    @overload
    def int(self, name: str) -> Int: ...
    @overload
    def int(self, name: str, default: Int) -> Int: ...
    def int(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._read(name, "i", int, default)

    def float(self, name: str, default: Float = _REQUIRED) -> Float:
        number: Float = self._read(name, "f", float, default)
        return number

    def bool(self, name: str, default: Bool = _REQUIRED) -> Bool:
        flag: Bool = self._read(name, "b", bool, default)
        return flag

    def string(self, name: str, default: str = _REQUIRED) -> str:
        text: str = self._read(name, "s", lambda s: s.decode(errors="replace"), default)
        return text

    def ints(self, name: str, default: tuple[Int, ...] = _REQUIRED) -> tuple[Int, ...]:
        numbers: tuple[Int, ...] = self._read(name, "list", lambda value: tuple(value.i), default)
        return numbers

    def strings(self, name: str, default: tuple[str, ...] = _REQUIRED) -> tuple[str, ...]:
        def texts(value: Any) -> tuple[str, ...]:
            return tuple(s.decode(errors="replace") for s in value.s)

        found: tuple[str, ...] = self._read(name, "list", texts, default)
        return found

    def floats(self, name: str, default: tuple[Float, ...] = _REQUIRED) -> tuple[Float, ...]:
        numbers: tuple[Float, ...] = self._read(name, "list", lambda value: tuple(value.f), default)
        return numbers

    def code(self, name: str, default: Int = _REQUIRED) -> Int:
        """A data type as TensorFlow's number."""
        number: Int = self._read(name, "type", int, default)
        return number

    def element(self, name: str, default: Int = _REQUIRED) -> ElementType:
        """A data type attribute, which must be one of numbers."""
        code = self.code(name, default)
        try:
            return element_of_code(code)
        except HloError:
            self.unsupported(f"{self.op_type} of {code_name(code)} is not supported", "numbers and booleans are")

    def shape(self, name: str) -> PartialShape:
        """A shape attribute; None also where it is left out."""
        shape: PartialShape = self._read(name, "shape", shape_of, None)
        return shape

    def tensor(self, name: str) -> Array:
        """A tensor attribute, which must be there; strings as `bytes` objects."""
        array: Array = self._read(name, "tensor", tensor_array, _REQUIRED)
        return array

    def function(self, name: str) -> tuple[Body, Mapping[str, Any]]:
        """The function that an attribute names, and the attributes it is called with."""
        called = self._read(name, "func", lambda value: value, _REQUIRED)
        return self._function_named(called)

    def functions(self, name: str) -> list[tuple[Body, Mapping[str, Any]]]:
        """The functions that an attribute lists."""
        called = self._read(name, "list", lambda value: list(value.func), _REQUIRED)
        return [self._function_named(c) for c in called]

    def _function_named(self, called: Any) -> tuple[Body, Mapping[str, Any]]:
        body = self.host.function(called.name)
        if body is None:
            self._malformed(f"the function {called.name} is not in the model")
        return body, called.attr

    def _read(self, name: str, kind: str, convert: Callable[[Any], Any], default: Any) -> Any:
        attribute = self.node.attributes[name] if name in self.node.attributes else None
        if attribute is not None and attribute.WhichOneof("value") == "placeholder":
            outer = attribute.placeholder
            attribute = self._outer[outer] if outer in self._outer else None
        if attribute is None:
            if default is _REQUIRED:
                self._malformed(f"the attribute {name} is missing")
            return default
        found = attribute.WhichOneof("value")
        if found != kind:
            self._malformed(f"the attribute {name} holds {found}, not {kind}")
        return convert(getattr(attribute, kind))

    # Ways to stop

    def unsupported(self, cause: str, hint: str = "") -> NoReturn:
        """This case of the operation has no import rule."""
        self._stop(UnsupportedOpError, cause, hint)

    def shape_error(self, cause: str, hint: str = "") -> NoReturn:
        """Shapes or element types do not fit together."""
        self._stop(ShapeError, cause, hint)

    def dynamic_shape(self, cause: str, hint: str = "", *, data: Int | None = None) -> NoReturn:
        """The shape of an output depends on data: on input `data`, whose chain to the graph inputs is told."""
        details = self.details()
        if data is not None and data < len(self._inputs) and isinstance(self._inputs[data], Instruction):
            blame = self.host.blame(self.input(data), "", self.source)
            details += blame.details
            if blame.needs_constants:
                given = ", ".join(f'"{name}": ...' for name in blame.needs_constants)
                hint = f"give the value while compiling, constants={{{given}}}; or {hint}"
        raise ProblemFound(Problem(DynamicShapeError, cause, self.source, details, hint))

    def _malformed(self, cause: str) -> NoReturn:
        self._stop(CompileError, f"{self.op_type}: {cause}", "")

    def _stop(self, kind: type[CompileError], cause: str, hint: str) -> NoReturn:
        raise ProblemFound(Problem(kind, cause, self.source, self.details(), hint or FOR_TENSORFLOW[kind]))

    def details(self) -> tuple[tuple[str, str], ...]:
        """The inputs with their types, as a problem lists them."""
        return tuple(("input", f"{self.input_name(i)} {describe(value)}") for i, value in enumerate(self._inputs))
