"""The parts that operations of MLIR's text are made of: values, regions, arguments, locations.

What operations look like is the business of the classes below this one (stablehlo_forms, operations).
"""

import re
from abc import abstractmethod
from collections.abc import Sequence

from onnxla.frontends.hlo.attributes import AttributeReader
from onnxla.frontends.hlo.syntax import (
    Argument,
    Form,
    Operation,
    Region,
)

OPCODE = re.compile(r"(?a)[A-Za-z_][\w$]*(?:\.[\w$]+)*")
_RESULTS = re.compile(r"(?a)%([\w$.\-]+)(?::(\d{1,6}))?")
_VALUE = re.compile(r"(?a)%([\w$.\-]+)(?:#(\d{1,6}))?")
_WORD = re.compile(r"(?a)[A-Za-z_]\w*")
_LARGEST_LOCATION = 4096


class PartReader(AttributeReader):
    """Reads what stands in an operation, and regions of operations."""

    @abstractmethod
    def operation(self, depth: int) -> Operation:
        """One operation with all that belongs to it, in `depth` regions."""

    def value(self) -> str:
        found = self.expect_match(_VALUE, "a value such as %0")
        return f"{found[1]}#{int(found[2] or 0)}"

    def operands(self) -> tuple[str, ...]:
        """`(%a, %b)`."""
        self.expect("(", "to open the operands")
        found: list[str] = []
        while not self.take(")"):
            if found:
                self.expect(",", "between operands")
            found.append(self.value())
        return tuple(found)

    def region(self, depth: int) -> Region:
        """`{ ^bb0(%x: type): operations }`."""
        self.expect("{", "to open a region")
        arguments: list[Argument] = []
        if self.take("^"):
            self.expect_match(_WORD, "the name of a block")
            if self.starts_with("("):
                arguments = self.arguments()
            self.expect(":", "after the arguments of a block")
        return Region(arguments, self.block(depth))

    def block(self, depth: int) -> list[Operation]:
        """Operations up to the closing brace."""
        found: list[Operation] = []
        while not self.take("}"):
            if self.starts_with("^"):
                self.fail("a second block in a region; only structured control flow is supported")
            found.append(self.operation(depth))
        return found

    def arguments(self) -> list[Argument]:
        """`(%x: type {attributes} loc(...), ...)`."""
        self.expect("(", "to open the arguments")
        found: list[Argument] = []
        while not self.take(")"):
            if found:
                self.expect(",", "between arguments")
            name = self.value()
            self.expect(":", "and the type of the argument")
            form = self.form()
            attributes = self.attribute_dictionary() if self.starts_with("{") else {}
            found.append(Argument(name, form, attributes, self.location() if self.starts_with("loc(") else ""))
        return found

    def location(self) -> str:
        """`loc(...)`, as written."""
        text = self.bracketed_after("loc")[1:-1]
        return text[:_LARGEST_LOCATION]

    def results(self) -> tuple[str, ...]:
        names: list[str] = []
        while self.starts_with("%"):
            found = self.expect_match(_RESULTS, "the name of a result")
            count = int(found[2] or 1)
            if not 0 < count <= 100_000:
                self.fail(f"{count} results")
            names += [f"{found[1]}#{k}" for k in range(count)]
            if not self.take(","):
                self.expect("=", "after the names of the results")
                break
        return tuple(names)

    def note_types(self, made: Operation, operands: Sequence[Form], results: Sequence[Form]) -> None:
        if len(operands) != len(made.operands):
            self.fail(f"{made.name} has {len(made.operands)} operands and {len(operands)} types for them", made.at)
        made.operand_forms, made.result_forms = tuple(operands), tuple(results)
