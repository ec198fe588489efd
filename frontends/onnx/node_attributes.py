"""The attributes of a node, read with the type that a rule says: what is not of that type is a problem of the node.

A rule reads them before its inputs: an input that failed to import ends the rule, and what is wrong with an attribute
is wrong whatever the inputs are.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias, overload

from onnx import AttributeProto, GraphProto, TensorProto

from onnxla.frontends.onnx.element_types import element_of_code
from onnxla.frontends.onnx.host import Host
from onnxla.frontends.onnx.node_form import kind_name
from onnxla.hlo.types import Array, ElementType

Int: TypeAlias = int
Float: TypeAlias = float
# The class below has methods of these names, which hide the types in its own annotations.

_REQUIRED: Any = object()
"""The default of a read that must succeed."""

_FIELD_OF_TYPE: dict[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
}


class NodeAttributes(ABC):
    """What a node view knows of the attributes of its node."""

    def __init__(self, attributes: Mapping[str, AttributeProto], host: Host) -> None:
        self.host = host
        self._attributes = attributes

    @abstractmethod
    def malformed(self, cause: str) -> NoReturn:
        """The node is not what the standard says a node of its operator is."""

    @abstractmethod
    def unsupported(self, cause: str, hint: str = "") -> NoReturn:
        """This case of the operator has no import rule."""

    def has(self, name: str) -> bool:
        """Whether the attribute is written down."""
        return name in self._attributes

    @overload
    def int(self, name: str) -> Int: ...
    @overload
    def int(self, name: str, default: Int) -> Int: ...
    @overload
    def int(self, name: str, default: None) -> Int | None: ...
    def int(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._read(name, AttributeProto.INT, int, default)

    @overload
    def float(self, name: str) -> Float: ...
    @overload
    def float(self, name: str, default: Float) -> Float: ...
    @overload
    def float(self, name: str, default: None) -> Float | None: ...
    def float(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._read(name, AttributeProto.FLOAT, float, default)

    @overload
    def string(self, name: str) -> str: ...
    @overload
    def string(self, name: str, default: str) -> str: ...
    @overload
    def string(self, name: str, default: None) -> str | None: ...
    def string(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._read(name, AttributeProto.STRING, self._text, default)

    @overload
    def ints(self, name: str) -> tuple[Int, ...]: ...
    @overload
    def ints(self, name: str, default: tuple[Int, ...]) -> tuple[Int, ...]: ...
    @overload
    def ints(self, name: str, default: None) -> tuple[Int, ...] | None: ...
    def ints(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._read(name, AttributeProto.INTS, tuple, default)

    @overload
    def floats(self, name: str) -> tuple[Float, ...]: ...
    @overload
    def floats(self, name: str, default: tuple[Float, ...]) -> tuple[Float, ...]: ...
    @overload
    def floats(self, name: str, default: None) -> tuple[Float, ...] | None: ...
    def floats(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._read(name, AttributeProto.FLOATS, tuple, default)

    @overload
    def strings(self, name: str) -> tuple[str, ...]: ...
    @overload
    def strings(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]: ...
    @overload
    def strings(self, name: str, default: None) -> tuple[str, ...] | None: ...
    def strings(self, name: str, default: Any = _REQUIRED) -> Any:
        return self._read(name, AttributeProto.STRINGS, lambda items: tuple(self._text(s) for s in items), default)

    def word(self, name: str, known: Sequence[str], default: str = _REQUIRED) -> str:
        """A string attribute that is one of `known`. Another one is a problem that names them."""
        word: str = self._read(name, AttributeProto.STRING, self._text, default)
        if word not in known:
            self.unsupported(f"{name}={word!r} is not known", f"{', '.join(known[:-1])} and {known[-1]} are")
        return word

    def element(self, name: str, default: ElementType = _REQUIRED) -> ElementType:
        """An attribute that is the number of an element type. Raises HloError for strings and numbers of none."""
        element: ElementType = self._read(name, AttributeProto.INT, element_of_code, default)
        return element

    def optional_element(self, name: str) -> ElementType | None:
        """The same; None where it is left out, or UNDEFINED."""
        return element_of_code(code) if (code := self.int(name, TensorProto.UNDEFINED)) else None

    def tensor(self, name: str) -> Array | None:
        """A tensor attribute as an array, or None where it is not written down."""
        array: Array | None = self._read(name, AttributeProto.TENSOR, self.host.tensor, None)
        return array

    def sparse_tensor(self, name: str) -> Array:
        """A sparse tensor attribute, which must be there, as a dense array."""
        array: Array = self._read(name, AttributeProto.SPARSE_TENSOR, self.host.dense_tensor, _REQUIRED)
        return array

    def graph(self, name: str) -> GraphProto:
        """A subgraph attribute, which must be there."""
        graph: GraphProto = self._read(name, AttributeProto.GRAPH, lambda g: g, _REQUIRED)
        return graph

    def _read(self, name: str, kind: Int, convert: Any, default: Any) -> Any:
        attribute = self._attributes.get(name)
        if attribute is None:
            if default is _REQUIRED:
                self.malformed(f"the attribute {name} is missing")
            return default
        # Models of the first IR versions leave the type out.
        if attribute.type not in (kind, AttributeProto.UNDEFINED):
            found, wanted = (kind_name(code) for code in (attribute.type, kind))
            self.malformed(f"the attribute {name} is {found}, not {wanted}")
        return convert(getattr(attribute, _FIELD_OF_TYPE[kind]))

    def _text(self, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            self.malformed("a string attribute is not UTF-8")
