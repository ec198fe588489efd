"""The text of an MLIR module to its functions and operations: the generic form, and the forms StableHLO prints.

What the operations mean is the importer's business. Any text gives a program or an error with line and column.
"""

import re
from typing import Any

from onnxla.config import Limits
from onnxla.errors import ResourceLimitError
from onnxla.frontends.hlo.operation_parts import OPCODE
from onnxla.frontends.hlo.stablehlo_forms import FormReader
from onnxla.frontends.hlo.syntax import (
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

_PREFIXED = re.compile(r"(?a)(stablehlo|mhlo|chlo|vhlo|func|builtin)\.")
_ALIAS = re.compile(r"(?a)(#[A-Za-z_][\w$.]*|#\d+)\s*=")
_RESOURCES = re.compile(r"(?a)\{-#.*", re.DOTALL)
_RESOURCE = re.compile(r'(?a)([\w$.\-]+|"(?:[^"\\\n]|\\.)*+")\s*:\s*"(0x[0-9A-Fa-f]*)"')


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


class OperationReader(FormReader):
    """Reads modules, functions and operations in both forms."""

    def __init__(self, text: str, limits: Limits) -> None:
        super().__init__(text, limits)
        self.count = 0

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
        results = self.results()
        if self.starts_with('"'):
            made = self._generic(start, depth)
        else:
            made = self._pretty(start, depth)
        if results and len(results) != len(made.result_forms) and not made.is_unread:
            self.fail(f"{made.name} has {len(made.result_forms)} results, and {len(results)} names for them", start)
        made.results = results or ("",) * len(made.result_forms)
        if self.starts_with("loc("):
            made.location = self.location()
        return made

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
        self.note_types(made, form.operands, form.results)
        if made.name == "func.func":
            made.attributes["is dynamic"] = (
                any(_is_open(f) for o in made.regions[0].walk() for f in (*(o.operand_forms or ()), *o.result_forms))
                if made.regions
                else False
            )
        return made

    def _pretty(self, start: int, depth: int) -> Operation:
        name = self.expect_match(OPCODE, "an operation")[0]
        name = {"module": "builtin.module", "call": "func.call", "return": "func.return", "func": "func.func"}.get(
            name, name
        )
        made = Operation(name, start)
        if name == "builtin.module":
            return self._module(made, depth)
        if name == "func.func":
            return self._function(made, depth)
        if not _PREFIXED.match(name):
            if "." not in name:
                self.fail(f"unknown operation {name[:60]}", start)
            self.skip_line(start)
            made.is_unread = True
            return made
        self.form_of(made, depth)
        return made

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
