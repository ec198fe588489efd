"""Types and attributes of MLIR text."""

import math
import re
from typing import Any

from onnxla.config import Limits
from onnxla.errors import HloError, ResourceLimitError
from onnxla.frontends.hlo.dense_literals import read_dense
from onnxla.frontends.hlo.syntax import Dense, Form, FunctionForm, OtherForm, Symbol, TensorForm, TupleForm, Written
from onnxla.hlo.attributes import unquote
from onnxla.hlo.text_reader import TextReader
from onnxla.hlo.types import ELEMENT_TYPES, S64, ElementType

_SIZE = re.compile(r"(?a)(\?|\d{1,19})x")
_WORD = re.compile(r"(?a)[A-Za-z_][\w$.]*")
_SYMBOL = re.compile(r'(?a)@(?:"(?:[^"\\\n]|\\.)*+"|[\w$.\-]+)(?:::@[\w$.\-]+)*')
_NUMBER = re.compile(r"(?a)[+-]?(?:0x[0-9A-Fa-f]{1,32}|\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,5})?)")
_HASH = re.compile(r"(?a)#[A-Za-z_][\w$.]*|#\d+")
_ANGLE = re.compile(r'(?a)"(?:[^"\\\n]|\\.)*+"?|->|[<>]')
_STRING = re.compile(r'(?a)"(?:[^"\\\n]|\\.)*+"')
_LARGEST_RANK = 64

_NAMES: dict[str, str] = {
    "i1": "pred",
    **{f"i{n}": f"s{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"si{n}": f"s{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"ui{n}": f"u{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"f{n}": f"f{n}" for n in (16, 32, 64)},
    "bf16": "bf16",
    **{n.upper().replace("F", "f", 1): n for n in ELEMENT_TYPES if n.startswith(("f8e", "f4e"))},
}
"""Element types by their names in MLIR: `f8E4M3FN` and so on."""


class AttributeReader(TextReader):
    """A cursor that reads types and attribute values."""

    def __init__(self, text: str, limits: Limits) -> None:
        super().__init__(text)
        self.limits = limits
        self.aliases: dict[str, Any] = {}
        """`#name = attribute`."""
        self.resources: dict[str, str] = {}
        """The bytes of `dense_resource<name>`, as hexadecimal digits, from the end of the text."""

    # Types

    def form(self, depth: int = 0) -> Form:
        """A type of a value."""
        self._limit(depth)
        start = self.at
        if self.take("tensor<"):
            return self._tensor(start)
        if self.take("tuple<"):
            elements: list[Form] = []
            while not self.take(">"):
                if elements:
                    self.expect(",", "between the types of a tuple")
                elements.append(self.form(depth + 1))
            return TupleForm(tuple(elements))
        if self.take("!"):
            name = self.expect_match(_WORD, "a type")[0]
            return OtherForm(f"!{name}{self.angled() if self.starts_with('<') else ''}")
        name = self.expect_match(_WORD, "a type")[0]
        if name == "complex" and self.starts_with("<"):
            self.at = start
            return TensorForm(self.element())
        if name in _NAMES or name == "index":
            return TensorForm(self._named(name, start))
        if name == "none":
            return OtherForm(name)
        self.fail(f"the type {name} is not supported; values are tensors and tuples of them", start)

    def _tensor(self, start: int) -> TensorForm:
        if self.starts_with("*"):
            self.fail("a tensor without a rank is not supported", start)
        shape: list[int | None] = []
        while found := self.match(_SIZE):
            shape.append(None if found[1] == "?" else int(found[1]))
            if len(shape) > _LARGEST_RANK:
                self.fail(f"a rank of more than {_LARGEST_RANK}", start)
        element = self.element()
        if self.take(","):
            self._require_harmless_encoding(start)
        self.expect(">", "to close the tensor type")
        sizes = [n for n in shape if n is not None]
        if max(math.prod(sizes), *sizes, 0) > self.limits.elements:
            self.fail(
                f"a tensor of more than {self.limits.elements} elements (the limit `elements`)",
                start,
                ResourceLimitError,
            )
        return TensorForm(element, tuple(shape))

    def _require_harmless_encoding(self, start: int) -> None:
        encoding = self.attribute()
        if isinstance(encoding, Written) and "bounds" in encoding.text:
            self.fail("a tensor with a bound instead of a size is not supported", start)

    def element(self) -> ElementType:
        start = self.at
        if self.take("complex<"):
            part = self.element()
            self.expect(">", "to close complex<")
            if str(part) not in ("f32", "f64"):
                self.fail(f"complex numbers of {part} are not supported", start)
            return ELEMENT_TYPES["c64" if part.bits == 32 else "c128"]
        name = self.expect_match(re.compile(r"(?a)[!\w.]+"), "an element type")[0]
        return self._named(name, start)

    def _named(self, name: str, start: int) -> ElementType:
        if name == "index":
            return S64
        if name not in _NAMES:
            self.fail(f"the element type {name[:40]} is not supported", start)
        return ELEMENT_TYPES[_NAMES[name]]

    def forms(self, depth: int = 0) -> tuple[Form, ...]:
        """`(type, type)`."""
        self.expect("(", "to open a list of types")
        found: list[Form] = []
        while not self.take(")"):
            if found:
                self.expect(",", "between types")
            found.append(self.form(depth))
        return tuple(found)

    def function_form(self, depth: int = 0) -> FunctionForm:
        """`(types) -> type` or `(types) -> (types)`."""
        operands = self.forms(depth + 1)
        self.expect("->", "and the type of the result")
        results = self.forms(depth + 1) if self.starts_with("(") else (self.form(depth + 1),)
        return FunctionForm(operands, results)

    # Attributes

    def attribute_dictionary(self, depth: int = 0) -> dict[str, Any]:
        """`{name = value, flag, "quoted" = value}`."""
        self._limit(depth)
        self.expect("{", "to open attributes")
        found: dict[str, Any] = {}
        while not self.take("}"):
            if found:
                self.expect(",", "between attributes")
            start = self.at
            name = self.attribute_name()
            if name in found:
                self.fail(f"a second attribute {name[:60]}", start)
            found[name] = self.attribute(depth + 1) if self.take("=") else True
        return found

    def attribute_name(self) -> str:
        if self.starts_with('"'):
            return unquote(self.quoted())
        return self.expect_match(_WORD, "the name of an attribute")[0]

    def attribute(self, depth: int = 0) -> Any:
        """The value of an attribute; its type, where one follows, is read over."""
        self._limit(depth)
        if self.starts_with("["):
            return self._list(depth)
        if self.starts_with("{"):
            return self.attribute_dictionary(depth + 1)
        if self.starts_with('"'):
            return self._typed(unquote(self.quoted()), depth)
        if self.starts_with("@"):
            return self.symbol()
        if self.starts_with("#"):
            return self._hash()
        if self.starts_with("<"):
            return Written(self.angled())
        if self.starts_with("("):
            return self.function_form(depth + 1)
        if self.take("dense<"):
            return self._dense()
        if self.take("dense_resource<"):
            return self._resource()
        if self.take("array<"):
            return self._array()
        if self.starts_with("loc("):
            return Written(self.bracketed_after("loc"))
        if found := self.match(_NUMBER):
            return self._typed(_number(found[0]), depth)
        return self._word(depth)

    def bare_attribute(self) -> Any:
        """The value of an attribute after which no type of it stands: a colon ends it."""
        found = self.match(_NUMBER)
        return _number(found[0]) if found else self.attribute()

    def _word(self, depth: int) -> Any:
        start = self.at
        word = self.expect_match(_WORD, "a value")[0]
        if word in ("true", "false"):
            return word == "true"
        if word == "unit":
            return True
        if word in ("tensor", "tuple", "complex", "none", "index") or word in _NAMES:
            self.at = start
            return self.form(depth + 1)
        return Written(word + (self.angled() if self.starts_with("<") else ""))

    def _typed(self, value: Any, depth: int) -> Any:
        """A value, and the type that may follow it."""
        if self.take(":"):
            self.form(depth + 1)
        return value

    def _list(self, depth: int) -> list[Any]:
        self.expect("[")
        found: list[Any] = []
        while not self.take("]"):
            if found:
                self.expect(",", "between the values of a list")
            found.append(self.attribute(depth + 1))
        return found

    def _array(self) -> list[Any]:
        """`array<i64: 1, 2>`, of which the bracket is open."""
        self.form()
        found: list[Any] = []
        self.take(":")
        while not self.take(">"):
            if found:
                self.expect(",", "between the values of an array")
            found.append(self.attribute())
        return found

    def symbol(self) -> Symbol:
        text = self.expect_match(_SYMBOL, "a symbol such as @main")[0][1:]
        return Symbol(unquote(text) if text.startswith('"') else text)

    def _hash(self) -> Any:
        start = self.at
        name = self.expect_match(_HASH, "an attribute")[0]
        if self.starts_with("<"):
            return Written(name + self.angled())
        if name in self.aliases:
            return self.aliases[name]
        if "." in name:
            return Written(name)
        self.fail(f"{name} is not defined above", start)

    def _dense(self) -> Dense:
        """`dense<...> : type`, of which the bracket is open."""
        start = self.at
        inside = self._inside_dense()
        self.expect(":", "and the type of the constant")
        type_at = self.at
        form = self.form()
        if not isinstance(form, TensorForm):
            self.fail(f"a constant of type {form}", type_at)
        try:
            return read_dense(inside, form)
        except HloError as error:
            self.fail(str(error), start)

    def _inside_dense(self) -> str:
        start = self.at
        if found := _STRING.match(self.text, self.at):
            self._step(found.end())
            self.expect(">", "to close dense<")
            return found[0]
        end = self.text.find(">", start)
        if end < 0:
            self.fail("dense< is never closed", start)
        self._step(end + 1)
        return self.text[start:end]

    def _resource(self) -> Dense:
        start = self.at
        name = self.expect_match(re.compile(r'(?a)[\w$.\-]+|"(?:[^"\\\n]|\\.)*+"'), "the name of a resource")[0]
        self.expect(">", "to close dense_resource<")
        self.expect(":", "and the type of the constant")
        form = self.form()
        if name not in self.resources or not isinstance(form, TensorForm):
            self.fail(f"the resource {name} is not in the text", start)
        try:
            # four bytes for the alignment lead
            return read_dense(f'"0x{self.resources[name].removeprefix("0x")[8:]}"', form)
        except HloError as error:
            self.fail(str(error), start)

    # Brackets

    def angled(self) -> str:
        """Step over the angle brackets that open here, of any depth; their text with them."""
        start, depth = self.at, 0
        for found in _ANGLE.finditer(self.text, start):
            depth += {"<": 1, ">": -1}.get(found[0], 0)
            if depth == 0:
                self._step(found.end())
                return self.text[start : found.end()]
        self.fail("this angle bracket is never closed", start)

    def bracketed_after(self, word: str) -> str:
        """Step over `word(...)`; the text with the brackets."""
        self.expect(word)
        return self.bracketed()

    def _limit(self, depth: int) -> None:
        if depth > self.limits.nesting:
            self.fail(f"brackets nest deeper than {self.limits.nesting} (the limit `nesting`)", kind=ResourceLimitError)


def _number(text: str) -> int | float:
    if "x" in text:
        return int(text, 16)
    return float(text) if any(c in text for c in ".eE") else int(text)
