"""The text of an MLIR module to its functions and operations: the generic form, and the forms StableHLO prints.

What the operations mean is the importer's business. Any text gives a program or an error with line and column.
"""

import re
from collections.abc import Sequence
from typing import Any

from onnxla.config import Limits
from onnxla.errors import ResourceLimitError
from onnxla.frontends.hlo.attributes import AttributeReader
from onnxla.frontends.hlo.syntax import (
    Argument,
    Form,
    Function,
    FunctionForm,
    Operation,
    Program,
    Region,
    TensorForm,
    TupleForm,
    Written,
)
from onnxla.hlo.attributes import unquote

_RESULTS = re.compile(r"(?a)%([\w$.\-]+)(?::(\d{1,6}))?")
_VALUE = re.compile(r"(?a)%([\w$.\-]+)(?:#(\d{1,6}))?")
_OPCODE = re.compile(r"(?a)[A-Za-z_][\w$]*(?:\.[\w$]+)*")
_PREFIXED = re.compile(r"(?a)(stablehlo|mhlo|chlo|vhlo|func|builtin)\.")
_KEY = re.compile(r"(?a)([A-Za-z_]\w*)\s*=")
_WORD = re.compile(r"(?a)[A-Za-z_]\w*")
_ALIAS = re.compile(r"(?a)(#[A-Za-z_][\w$.]*|#\d+)\s*=")
_RESOURCES = re.compile(r"(?a)\{-#.*", re.DOTALL)
_RESOURCE = re.compile(r'(?a)([\w$.\-]+|"(?:[^"\\\n]|\\.)*+")\s*:\s*"(0x[0-9A-Fa-f]*)"')
_SLICE = re.compile(r"(?a)(-?\d{1,19})\s*:\s*(-?\d{1,19})(?:\s*:\s*(-?\d{1,19}))?")
_PRECISION = re.compile(r"(?a)e(\d{1,3})m(\d{1,3})")
_LARGEST_LOCATION = 4096


def read_program(text: str, limits: Limits | None = None) -> Program:
    """The module that `text` spells. Raises HloError, or ResourceLimitError beyond `limits`."""
    limits = limits or Limits.from_environment()
    if len(text) > limits.text_bytes:
        raise ResourceLimitError(f"text of {len(text)} characters; the limit is {limits.text_bytes} (text_bytes)")
    resources = _RESOURCES.search(text)
    reader = OperationReader(text[: resources.start()] if resources else text, limits)
    if resources:
        reader.resources = {name.strip('"'): digits for name, digits in _RESOURCE.findall(resources[0])}
    program = reader.program()
    program.text = text
    return program


class OperationReader(AttributeReader):
    """Reads operations; `custom` has the forms that are like no other."""

    def __init__(self, text: str, limits: Limits) -> None:
        super().__init__(text, limits)
        self.count = 0
        self._open_sizes = 0

    # The module

    def program(self) -> Program:
        """The functions of the one module in the text, or of a text of functions alone."""
        operations = self._top_level()
        name = "module"
        if len(operations) == 1 and operations[0].name == "builtin.module":
            module = operations[0]
            name = str(module.attributes.get("sym_name") or name)
            operations = module.regions[0].operations if module.regions else []
        functions: dict[str, Function] = {}
        for operation in operations:
            if operation.name != "func.func":
                self.fail(f"{operation.name} does not stand in a function", operation.at)
            function = self._function_of(operation)
            if function.name in functions:
                self.fail(f"a second function is called @{function.name}", operation.at)
            functions[function.name] = function
        if "main" not in functions and len(functions) != 1:
            self.fail(f"{len(functions)} functions, and none is called @main", 0)
        main = functions.get("main") or next(iter(functions.values()))
        return Program(name, functions, main, self.place, self.aliases)

    def _top_level(self) -> list[Operation]:
        operations: list[Operation] = []
        while not self.is_done:
            if alias := self.match(_ALIAS):
                self.aliases[alias[1]] = self._aliased()
            else:
                operations.append(self.operation(0))
        return operations

    def _aliased(self) -> Any:
        return Written(self.location()) if self.starts_with("loc(") else self.attribute()

    def _function_of(self, operation: Operation) -> Function:
        form, name = operation.attributes.get("function_type"), operation.attributes.get("sym_name")
        if not isinstance(form, FunctionForm) or not isinstance(name, str) or len(operation.regions) != 1:
            self.fail("a function needs a name, a type and a body", operation.at)
        body = operation.regions[0]
        if not body.operations:
            self.fail(f"the function @{name} has no body", operation.at)
        if tuple(a.form for a in body.arguments) != form.operands:
            self.fail(f"the arguments of @{name} are not those of its type", operation.at)
        for argument, attributes in zip(
            body.arguments, operation.attributes.get("arg_attrs") or [{}] * len(body.arguments), strict=False
        ):
            if isinstance(attributes, dict) and attributes:
                argument.attributes = attributes
        results = operation.attributes.get("res_attrs") or []
        return Function(
            name, operation.at, body, form.results, results, bool(operation.attributes.get("is dynamic", False))
        )

    # Operations

    def operation(self, depth: int) -> Operation:
        """One operation with all that belongs to it."""
        start = self.at
        self.count += 1
        if self.count > self.limits.nodes:
            self.fail(f"more than {self.limits.nodes} operations (the limit `nodes`)", kind=ResourceLimitError)
        if depth > self.limits.nesting:
            self.fail(f"regions nest deeper than {self.limits.nesting} (the limit `nesting`)", kind=ResourceLimitError)
        results = self._results()
        if self.starts_with('"'):
            made = self._generic(start, depth)
        else:
            made = self._pretty(start, depth)
        if results and len(results) != len(made.result_forms):
            self.fail(f"{made.name} has {len(made.result_forms)} results, and {len(results)} names for them", start)
        made.results = results or ("",) * len(made.result_forms)
        if self.starts_with("loc("):
            made.location = self.location()
        return made

    def _results(self) -> tuple[str, ...]:
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

    def _generic(self, start: int, depth: int) -> Operation:
        """`"dialect.name"(%a) <{properties}> ({regions}) {attributes} : (types) -> types`."""
        made = Operation(unquote(self.quoted()), start)
        made.operands = self.operands()
        if self.starts_with("["):
            self.fail(f"{made.name} has successors; only structured control flow is supported", start)
        if self.take("<"):
            made.attributes |= self.attribute_dictionary()
            self.expect(">", "to close the properties")
        if self.take("("):
            made.regions.append(self.region(depth + 1))
            while self.take(","):
                made.regions.append(self.region(depth + 1))
            self.expect(")", "to close the regions")
        if self.starts_with("{"):
            made.attributes |= self.attribute_dictionary()
        self.expect(":", f"and the types of {made.name}")
        form = self.function_form()
        self._note_types(made, form.operands, form.results)
        if made.name == "func.func":
            made.attributes["is dynamic"] = (
                any(_is_open(f) for o in made.regions[0].walk() for f in (*(o.operand_forms or ()), *o.result_forms))
                if made.regions
                else False
            )
        return made

    def _pretty(self, start: int, depth: int) -> Operation:
        name = self.expect_match(_OPCODE, "an operation")[0]
        name = {"module": "builtin.module", "call": "func.call", "return": "func.return", "func": "func.func"}.get(
            name, name
        )
        made = Operation(name, start)
        if name == "builtin.module":
            return self._module(made, depth)
        if name == "func.func":
            return self._function(made, depth)
        if not _PREFIXED.match(name):
            self.fail(f"unknown operation {name[:60]}", start)
        match name.partition(".")[2]:
            case "while":
                self._while(made, depth)
            case "reduce" if self.starts_with("("):
                self._reduce(made, depth)
            case _:
                self._items(made)
                self._types(made)
        return made

    def _note_types(self, made: Operation, operands: Sequence[Form], results: Sequence[Form]) -> None:
        if len(operands) != len(made.operands):
            self.fail(f"{made.name} has {len(made.operands)} operands and {len(operands)} types for them", made.at)
        made.operand_forms, made.result_forms = tuple(operands), tuple(results)

    # Parts of operations

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

    # The forms of StableHLO

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
                if attributes["value"].__class__.__name__ == "Dense":
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
            self.expect_match(re.compile(r"(?a)(?:x|->)?\s*\[[^\[\]]*\]"), "dimensions such as [b, 0, 1, f]")
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
                rows.append([int(self.expect_match(re.compile(r"(?a)-?\d{1,19}"), "a range such as 0:4")[0])])
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
            self._note_types(made, form.operands, form.results)
            return
        found = [self.form()]
        while self.take(","):
            found.append(self.form())
        if self.take("->"):
            results = self.forms() if self.starts_with("(") else (self.form(),)
            self._note_types(made, found, results)
        elif returns:
            self._note_types(made, found, ())
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
        applied = self.expect_match(_OPCODE, "an operation")[0] if self.take("applies") else None
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

    # Modules and functions

    def _module(self, made: Operation, depth: int) -> Operation:
        if self.starts_with("@"):
            made.attributes["sym_name"] = self.symbol().name
        if self.take("attributes"):
            made.attributes |= self.attribute_dictionary()
        self.expect("{", "to open the module")
        made.regions.append(Region([], self.block(depth + 1)))
        return made

    def _function(self, made: Operation, depth: int) -> Operation:
        self.take("public") or self.take("private") or self.take("nested")
        name = self.symbol().name
        arguments = self.arguments()
        results: list[Form] = []
        attributes: list[dict[str, Any]] = []
        if self.take("->"):
            if self.take("("):
                while not self.take(")"):
                    if results:
                        self.expect(",", "between results")
                    results.append(self.form())
                    attributes.append(self.attribute_dictionary() if self.starts_with("{") else {})
            else:
                results.append(self.form())
                attributes.append({})
        if self.take("attributes"):
            made.attributes |= self.attribute_dictionary()
        self.expect("{", "to open the function")
        body = Region(arguments, self.block(depth + 1))
        made.regions.append(body)
        open_sizes = any(_is_open(f) for o in body.walk() for f in (*(o.operand_forms or ()), *o.result_forms)) or any(
            _is_open(a.form) for a in arguments
        )
        made.attributes |= {
            "sym_name": name,
            "function_type": FunctionForm(tuple(a.form for a in arguments), tuple(results)),
            "res_attrs": attributes,
            "is dynamic": open_sizes,
        }
        return made


def _is_open(form: Form) -> bool:
    """Whether a size is left open."""
    if isinstance(form, TupleForm):
        return any(map(_is_open, form.elements))
    return isinstance(form, TensorForm) and not form.is_static
