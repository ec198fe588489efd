"""Operations as StableHLO prints them: operands, words and attributes in any order; loops and reductions in forms of
their own."""

import re
from typing import Any

from onnxla.frontends.hlo.operation_parts import OPCODE, PartReader
from onnxla.frontends.hlo.syntax import (
    Argument,
    Dense,
    Operation,
    Region,
    TensorForm,
    Written,
)
from onnxla.hlo.attributes import unquote

_KEY = re.compile(r"(?a)([A-Za-z_]\w*)\s*=")
_WORD = re.compile(r"(?a)[A-Za-z_]\w*")
_NUMBER = re.compile(r"(?a)-?\d{1,19}")
_DIMENSIONS = re.compile(r"(?a)(?:x|->)?\s*\[[^\[\]]*\]")
_SLICE = re.compile(r"(?a)(-?\d{1,19})\s*:\s*(-?\d{1,19})(?:\s*:\s*(-?\d{1,19}))?")
_PRECISION = re.compile(r"(?a)e(\d{1,3})m(\d{1,3})")


class FormReader(PartReader):
    """Reads what follows the name of an operation."""

    def form_of(self, made: Operation, depth: int) -> None:
        """All of `made` behind its name."""
        match made.name.partition(".")[2]:
            case "while":
                self._while(made, depth)
            case "reduce" if self.starts_with("("):
                self._reduce(made, depth)
            case _:
                self._items(made)
                self._types(made)

    def _items(self, made: Operation) -> None:
        """Operands, symbols, words, `key = value` and attributes, in any order, up to the colon before the types."""
        operands: list[str] = []
        words: list[str] = []
        attributes = made.attributes
        while not self.starts_with(":") and not self.is_done:
            if self.take(","):
                continue
            if self.starts_with("%"):
                operands.append(self.value())
            elif self.starts_with("("):
                operands += self._nested_operands(made)
            elif self.starts_with("@"):
                attributes["symbol"] = self.symbol()
            elif self.starts_with('"'):
                attributes["name"] = unquote(self.quoted())
            elif self.starts_with("{"):
                attributes |= self.attribute_dictionary()
            elif self.starts_with("["):
                attributes["ranges"] = self._ranges()
            elif self.starts_with("dense") or self.starts_with("#"):
                attributes["value"] = self.attribute()
                if isinstance(attributes["value"], Dense):
                    made.operands = tuple(operands)
                    made.result_forms = (attributes["value"].form,)
                    return
            elif key := self.match(_KEY):
                attributes[key[1]] = self._keyed(made, key[1])
            elif made.name.endswith(".compare") and (word := self.match(_WORD)):
                words.append(word[0])
            elif self.starts_with("}") or self.starts_with("loc("):
                break
            else:
                self.fail(f"expected an operand or attribute of {made.name}, or ':' and its types")
        if words:
            attributes["words"] = words
        made.operands = tuple(operands)

    def _nested_operands(self, made: Operation) -> list[str]:
        """`(%a, %b)`, or `(%a, k = 2)` as chlo has it."""
        self.expect("(")
        found: list[str] = []
        while not self.take(")"):
            if self.take(","):
                continue
            if key := self.match(_KEY):
                made.attributes[key[1]] = self.bare_attribute()
            else:
                found.append(self.value())
        return found

    def _keyed(self, made: Operation, key: str) -> Any:
        if key == "dim_numbers":
            return Written(self._dimension_numbers())
        if key == "format":
            found = self.expect_match(_PRECISION, "a format such as e5m10")
            return [int(found[1]), int(found[2])]
        if key == "window":
            return self._window()
        value = self.bare_attribute()
        if key in ("batching_dims", "contracting_dims"):
            self.expect("x", f"between the two sides of {key}")
            return [value, self.attribute()]
        return value

    def _dimension_numbers(self) -> str:
        start = self.at
        for _ in range(3):
            self.expect_match(_DIMENSIONS, "dimensions such as [b, 0, 1, f]")
        return self.text[start : self.at]

    def _window(self) -> dict[str, Any]:
        """`{stride = [2, 2], pad = [[0, 1], [0, 1]]}`."""
        return self.attribute_dictionary()

    def _ranges(self) -> list[list[int]]:
        """`[0:1, 0:8:2]`, or a list of numbers."""
        self.expect("[")
        rows: list[list[int]] = []
        while not self.take("]"):
            if rows:
                self.expect(",", "between ranges")
            if found := self.match(_SLICE):
                rows.append([int(found[1]), int(found[2]), int(found[3] or 1)])
            else:
                rows.append([int(self.expect_match(_NUMBER, "a range such as 0:4")[0])])
        return rows

    def _types(self, made: Operation) -> None:
        """`: (types) -> types`, `: type, type`, or nothing."""
        if made.result_forms and not self.starts_with(":"):
            return
        returns = made.name.endswith(".return")
        if not self.take(":"):
            if not returns:
                self.fail(f"expected ':' and the types of {made.name}")
            return
        if self.starts_with("("):
            form = self.function_form()
            self.note_types(made, form.operands, form.results)
            return
        found = [self.form()]
        while self.take(","):
            found.append(self.form())
        if self.take("->"):
            results = self.forms() if self.starts_with("(") else (self.form(),)
            self.note_types(made, found, results)
        elif returns:
            self.note_types(made, found, ())
        elif made.name.endswith(("optimization_barrier", "while")):
            made.result_forms = tuple(found)
        else:
            made.result_forms = (found[-1],)

    def _while(self, made: Operation, depth: int) -> None:
        """`(%x = %a, %y = %b) : types cond { } do { }`."""
        self.expect("(", "to open the values of the loop")
        names: list[str] = []
        operands: list[str] = []
        while not self.take(")"):
            if names:
                self.expect(",", "between the values of the loop")
            names.append(self.value())
            self.expect("=", "after the name of a value of the loop")
            operands.append(self.value())
        made.operands = tuple(operands)
        if self.take(":"):
            found = [self.form()] if names else []
            while self.take(","):
                found.append(self.form())
            made.result_forms = tuple(found)
        if self.take("attributes"):
            made.attributes |= self.attribute_dictionary()
        if len(names) != len(made.result_forms):
            self.fail(f"a loop of {len(names)} values and {len(made.result_forms)} types for them", made.at)
        for word in ("cond", "do"):
            self.expect(word, "and the region of the loop")
            self.expect("{", "to open the region")
            arguments = [Argument(n, f) for n, f in zip(names, made.result_forms, strict=True)]
            made.regions.append(Region(arguments, self.block(depth + 1)))

    def _reduce(self, made: Operation, depth: int) -> None:
        """`(%a init: %c), ... [applies name] across dimensions = [1] : types [reducer(...) (...) { }]`."""
        operands: list[str] = []
        inits: list[str] = []
        while self.take("("):
            operands.append(self.value())
            self.expect("init:", "and the initial value")
            inits.append(self.value())
            self.expect(")", "to close an operand of the reduction")
            self.take(",")
        made.operands = (*operands, *inits)
        applied = self.expect_match(OPCODE, "an operation")[0] if self.take("applies") else None
        self.expect("across dimensions", "and the dimensions of the reduction")
        self.expect("=")
        made.attributes["dimensions"] = self.attribute()
        if self.starts_with("{"):
            made.attributes |= self.attribute_dictionary()
        self._types(made)
        if applied is not None:
            made.regions.append(self._applied(applied, made))
            return
        self.expect("reducer", "and the arguments of the reduction")
        pairs = [self.arguments() for _ in operands]
        if any(len(p) != 2 for p in pairs):
            self.fail("each operand of a reduction has two arguments", made.at)
        self.expect("{", "to open the region")
        made.regions.append(Region([p[0] for p in pairs] + [p[1] for p in pairs], self.block(depth + 1)))

    def _applied(self, name: str, made: Operation) -> Region:
        form = made.result_forms[0] if made.result_forms else None
        if not isinstance(form, TensorForm):
            self.fail("a reduction gives tensors", made.at)
        scalar = TensorForm(form.element)
        both = ("lhs#0", "rhs#0")
        applied = Operation(name, made.at, ("0#0",), both, result_forms=(scalar,))
        returned = Operation("stablehlo.return", made.at, (), ("0#0",))
        return Region([Argument(b, scalar) for b in both], [applied, returned])
