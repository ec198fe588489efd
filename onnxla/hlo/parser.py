"""HLO text to a module: our own dumps, and the text that XLA and JAX print.

Names may have their `%` or not, operands their types or not. What cannot change the result
(sharding, schedules, layouts, ...) is skipped; what could and is not understood is
an error. Any text at all gives a module or an error with line and column, within `Limits`; instructions that read
and cannot be are all in one error: an UnsupportedOpError where they are only not supported.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnxla.config import Limits
from onnxla.errors import HloError, OnnxlaError, Problem, ResourceLimitError, SourceNode, UnsupportedOpError
from onnxla.hlo import xla_forms
from onnxla.hlo.attributes import unquote
from onnxla.hlo.literal import Literal
from onnxla.hlo.literal_text import parse_literal
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.op import OPS, fail
from onnxla.hlo.op_text import attributes_of, make_op
from onnxla.hlo.ops.control_flow import Call, Fusion
from onnxla.hlo.ops.structural import Parameter
from onnxla.hlo.text_reader import TextReader
from onnxla.hlo.types import ELEMENT_TYPES, F32, Array, Shape, TensorType, TupleType, Type
from onnxla.hlo.unknown_opcodes import way_out

Weights: TypeAlias = Callable[[str, TensorType], Array]
"""The value of a constant that the text elides, from `computation/instruction` and its type."""

_NAME = re.compile(r"%?([A-Za-z0-9_][A-Za-z0-9_.\-]*)")
_OPCODE = re.compile(r"[a-z][a-z0-9\-]*")
_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_\-]*")
_BARE = re.compile(r"(?a)(?:\[[^\]\n]*\]|[^\s,{}\[\"])+")
_OPERAND = re.compile(r"(?a)%?([A-Za-z0-9_][A-Za-z0-9_.\-]*)(?=\s*[,)])")
_ELEMENT = re.compile(r"([a-z][a-z0-9]*)\[")
_DIMENSIONS = re.compile(r"(?a)\s*(?:\d{1,19}\s*(?:,\s*\d{1,19}\s*)*)?(?=\])")
_LAYOUT = re.compile(r"(?a)\{((?:\d{1,2}(?:,\s*\d{1,2})*)?)(?::[A-Za-z0-9(),*\-\s#]*)?\}")
_TABLE = re.compile(r"(?a)(?:FileNames|FunctionNames|FileLocations|StackFrames)\b[^\n]*(?:\n[ \t]*\d[^\n]*)*")
_INTEGER = re.compile(r"(?a)\d{1,9}")
_SOURCE = re.compile(r'(?a)\b(op_type|op_name)=("(?:[^"\\]|\\.)*+")', re.DOTALL)
_WORD = re.compile(r"[A-Za-z0-9_.\-]+")

_LARGEST_RANK = 64
"""numpy's."""
_MOST_FAULTS = 50

_HARMLESS = frozenset(
    """
    allow_spmd_sharding_propagation_to_output allow_spmd_sharding_propagation_to_parameters backend_config
    buffer_donor channel_id control-predecessors entry_computation_layout execution_thread frontend_attributes
    input_output_alias is_composite is_scheduled metadata num_partitions operand_precision origin original_value
    outer_dimension_partitions parameter_replication replica_count result_accuracy sharding statistics
    """.split()
)
"""Attributes that say how to run a program, not what it computes."""


def parse_module(text: str, *, weights: Weights | None = None, limits: Limits | None = None) -> Module:
    """The module that `text` spells.

    Raises HloError with all instructions that are none, UnsupportedOpError with all operations and element types that
    are not supported where these are all that is wrong, and ResourceLimitError beyond `limits`.

    `weights` gives the constants that the text elides as `{...}`; without it they are an error.
    """
    limits = limits or Limits.from_environment()
    if len(text) > limits.text_bytes:
        raise ResourceLimitError(f"HLO text of {len(text)} characters; the limit is {limits.text_bytes} (text_bytes)")
    parser = _Parser(text, weights, limits)
    try:
        module = parser.module()
    except HloError as error:
        if parser.faults:
            raise _report([*parser.faults, str(error)]) from error
        raise
    if parser.faults:
        raise _report(parser.faults)
    return module


def _report(faults: Sequence[str | Problem]) -> OnnxlaError:
    unsupported = [fault for fault in faults if isinstance(fault, Problem)]
    if len(unsupported) == len(faults):
        return UnsupportedOpError(unsupported)
    head = "" if len(faults) == 1 else f"{len(faults)} problems\n"
    more = f"\nand {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
    return HloError(head + "\n".join(map(str, faults[:_MOST_FAULTS])) + more)


def zero_weights(name: str, type: TensorType) -> Array:
    """Zeros for every elided constant: enough to look at a dump without its weights."""
    import numpy as np

    return np.zeros(type.shape, type.element.dtype)


def weights_from(arrays: Mapping[str, Array]) -> Weights:
    """The elided constants from a mapping, such as the one `long_constants` describes."""

    def find(name: str, type: TensorType) -> Array:
        if name not in arrays:
            raise HloError(f"no value was given for the elided constant {name}")
        return arrays[name]

    return find


@dataclass(frozen=True)
class _Named:
    """An instruction under a name of the text, and the order of its dimensions in memory that the text gives."""

    instruction: Instruction
    order: Shape


class _Parser:
    def __init__(self, text: str, weights: Weights | None, limits: Limits) -> None:
        self.reader = TextReader(text)
        self.weights = weights
        self.limits = limits
        self.computations: dict[str, Computation] = {}
        self.order: Shape = ()
        """Of the tensor type read last."""
        self.depths: dict[Computation, int] = {}
        self.count = 0
        self.faults: list[str | Problem] = []
        """Of instructions: what is wrong, and where; problems are what is not supported. Others with their declared
        types stand in their places."""
        self.strange: Problem | None = None
        """An element type that was read and is not supported."""
        self.is_scheduled = False
        """Whether XLA wrote it after its passes: its fusions are not ours, so they are calls here."""

    # Module

    def module(self) -> Module:
        name, entry = "module", None
        if self.reader.take("HloModule"):
            name = self.reader.expect_match(_NAME, "the name of the module")[1]
            self.header()
        while not self.reader.is_done:
            if self.reader.match(_TABLE):
                continue
            start = self.reader.at
            is_entry = self.keyword("ENTRY")
            computation = self.computation()
            if is_entry and entry is not None:
                self.reader.fail("a second ENTRY computation", start)
            entry = computation if is_entry else entry
        if entry is None:
            if len(self.computations) != 1:
                self.reader.fail(f"{len(self.computations)} computations, and none is marked ENTRY")
            entry = next(iter(self.computations.values()))
        if self.strange and not self.faults:
            self.faults.append(self.strange)
        return Module(name, entry)

    def header(self) -> None:
        while self.reader.take(","):
            start = self.reader.at
            name, value = self.attribute()
            if name not in _HARMLESS:
                self.reader.fail(f"unknown attribute {name} of the module", start)
            self.is_scheduled |= name == "is_scheduled" and value == "true"

    def keyword(self, word: str) -> bool:
        """Step over `word` where it stands alone."""
        found = _WORD.match(self.reader.text, self.reader.at)
        return bool(found) and found[0] == word and self.reader.take(word)  # type: ignore[index]

    # Computations

    def computation(self) -> Computation:
        start = self.reader.at
        name = self.reader.expect_match(_NAME, "a computation")[1]
        if name in self.computations:
            self.reader.fail(f"a second computation is called {name}", start)
        if self.reader.starts_with("("):
            self.reader.bracketed()
            self.reader.expect("->", "and the result type of the computation")
            self.type()
        self.reader.expect("{", "to open the computation")
        values: dict[str, _Named] = {}
        parameters: dict[int, Instruction] = {}
        root = last = None
        while not self.reader.take("}"):
            line = self.reader.at
            is_root = self.keyword("ROOT")
            last = self.instruction(name, values, parameters)
            if is_root and root is not None:
                self.reader.fail("a second ROOT in one computation", line)
            root = last if is_root else root
        if last is None:
            self.reader.fail(f"computation {name} is empty", start)
        while self.reader.take(","):
            self.attribute()
        if sorted(parameters) != list(range(len(parameters))):
            self.reader.fail(f"parameters of {name} are numbered {sorted(parameters)[:20]}, not from 0 on", start)
        computation = Computation(name, [parameters[n] for n in sorted(parameters)], root or last)
        self.limit_depth(computation, values, start)
        self.computations[name] = computation
        return computation

    def limit_depth(self, computation: Computation, values: dict[str, _Named], start: int) -> None:
        """Calls nest at most `limits.nesting` deep; a computation only calls earlier ones, so never itself."""
        called = {c for v in values.values() for c in v.instruction.op.computations}
        self.depths[computation] = 1 + max((self.depths[c] for c in called), default=0)
        if self.depths[computation] > self.limits.nesting:
            self.reader.fail(
                f"calls nest deeper than {self.limits.nesting} (the limit `nesting`)", start, ResourceLimitError
            )

    # Instructions

    def instruction(self, where: str, values: dict[str, _Named], parameters: dict[int, Instruction]) -> Instruction:
        start = self.reader.at
        self.count += 1
        if self.count > self.limits.nodes:
            self.reader.fail(f"more than {self.limits.nodes} instructions (the limit `nodes`)", kind=ResourceLimitError)
        name = self.reader.expect_match(_NAME, "an instruction or '}'")[1]
        if name in values:
            self.reader.fail(f"a second instruction is called {name}", start)
        self.reader.expect("=", f"after {name}")
        self.strange = None
        type = self.type()
        order = self.order
        opcode_at = self.reader.at
        opcode = self.reader.expect_match(_OPCODE, "an operation")[0]
        if opcode not in OPS and opcode not in xla_forms.FORMS:
            cause = f"unknown operation {opcode}\n{self.reader.place(opcode_at)}"
            self.strange = Problem(UnsupportedOpError, cause, hint=way_out(opcode))
        if self.strange:
            self.faults.append(self.strange)
            return self.skipped(name, opcode, type, order, values, parameters)
        self.reader.expect("(", f"after {opcode}")
        known: dict[str, Any] = {}
        operands: list[_Named] = []
        if opcode == "constant":
            known["literal"] = self.literal(f"{where}/{name}", type)
        elif opcode == "parameter":
            known["number"] = int(self.reader.expect_match(_INTEGER, "the number of the parameter")[0])
        else:
            operands = self.operands(values)
        self.reader.expect(")", f"to close {opcode}")
        attributes, source = self.attributes(opcode)
        values_of = [o.instruction for o in operands]
        try:
            if make := xla_forms.find(opcode, attributes):
                orders = [o.order for o in operands]
                made = make(xla_forms.Form(values_of, attributes, type, order, orders, source))
            else:
                op = make_op(OPS[opcode], known, attributes, type, self.computations)
                if self.is_scheduled and isinstance(op, Fusion):
                    op = Call(op.calls)
                made = Instruction(op, values_of, name=name, source=source)
            if made.type != type:
                fail(f"{name} is declared as {type}, but {opcode} gives {made.type}")
        except HloError as error:
            self.faults.append(f"{error}\n{self.reader.place(start)}")
            made = Instruction(Parameter(0, type), name=name)
        if opcode == "parameter" and parameters.setdefault(known["number"], made) is not made:
            self.reader.fail(f"a second parameter({known['number']})", start)
        values[name] = _Named(made, order)
        return made

    def skipped(
        self,
        name: str,
        opcode: str,
        type: Type,
        order: Shape,
        values: dict[str, _Named],
        parameters: dict[int, Instruction],
    ) -> Instruction:
        """Step over the rest of an instruction that cannot be made; what stands for it, so that reading goes on."""
        made = Instruction(Parameter(0, type), name=name)
        values[name] = _Named(made, order)
        if opcode == "parameter" and self.reader.take("(") and (number := self.reader.match(_INTEGER)):
            parameters[int(number[0])] = made
            self.reader.take(")")
        self.reader.skip_line(self.reader.at)
        return made

    def operands(self, values: dict[str, _Named]) -> list[_Named]:
        found: list[_Named] = []
        while not self.reader.starts_with(")"):
            if found:
                self.reader.expect(",", "between operands")
            start = self.reader.at
            name = self.reader.match(_OPERAND)
            if name is None:
                self.type()
                start = self.reader.at
                name = self.reader.expect_match(_OPERAND, "the name of an operand")
            if name[1] not in values:
                self.reader.fail(f"no instruction above is called {name[1]}", start)
            found.append(values[name[1]])
        return found

    def literal(self, name: str, type: Type) -> Literal:
        start = self.reader.at
        if not isinstance(type, TensorType):
            self.reader.fail(f"a constant of type {type}; only tensors have constants")
        if self.reader.take("{...}"):
            return self.elided(name, type, start)
        if self.reader.text[start : start + 1] in ("{", "("):
            text = self.reader.bracketed()
        else:
            text = self.reader.expect_match(re.compile(r"(?a)[^\s{}(),]+(?:\(0x[0-9a-f]+\))?"), "a value")[0]
        try:
            return Literal(parse_literal(text, type))
        except HloError as error:
            self.reader.fail(str(error), start)

    def elided(self, name: str, type: TensorType, start: int) -> Literal:
        if type.size == 0:
            return Literal(zero_weights(name, type))
        if self.weights is None:
            self.reader.fail(f"the constant {name} is elided; its value must be given beside the text", start)
        try:
            literal = Literal(self.weights(name, type), name.rpartition("/")[2])
        except HloError as error:
            self.reader.fail(str(error), start)
        if literal.type != type:
            self.reader.fail(f"the value given for {name} has type {literal.type}", start)
        return literal

    def attributes(self, opcode: str) -> tuple[dict[str, str], SourceNode | None]:
        """The attributes of an instruction that matter, and the node its metadata names."""
        found: dict[str, str] = {}
        source = None
        own = {a.name for a in attributes_of(OPS[opcode])} if opcode in OPS else set()
        while self.reader.take(","):
            start = self.reader.at
            name, value = self.attribute()
            if name in found:
                self.reader.fail(f"a second attribute {name}", start)
            if name == "metadata":
                words = {key: unquote(text) for key, text in _SOURCE.findall(value)}
                if words:
                    source = SourceNode(words.get("op_name", ""), words.get("op_type", ""))
            elif name in own or name not in _HARMLESS:
                found[name] = value
        return found, source

    def attribute(self) -> tuple[str, str]:
        """`name=value`; the value is a word, a string or a bracketed text, as written."""
        name = self.reader.expect_match(_ATTRIBUTE, "the name of an attribute")[0]
        self.reader.expect("=", f"after {name}")
        if self.reader.starts_with("{") or self.reader.starts_with("("):
            return name, self.reader.bracketed()
        if self.reader.starts_with('"'):
            return name, self.reader.quoted()
        found = self.reader.match(_BARE)
        return name, found[0] if found else ""

    # Types

    def type(self, depth: int = 0) -> Type:
        """A tensor or tuple type, with or without a layout."""
        if depth > self.limits.nesting:
            self.reader.fail(
                f"tuples nest deeper than {self.limits.nesting} (the limit `nesting`)", kind=ResourceLimitError
            )
        if self.reader.starts_with("("):
            return TupleType(tuple(self.types(depth + 1)))
        start = self.reader.at
        element = self.reader.expect_match(_ELEMENT, "a type")[1]
        if element not in ELEMENT_TYPES:
            cause = f"element type {element} is not supported\n{self.reader.place(start)}"
            self.strange = self.strange or Problem(UnsupportedOpError, cause)
        dimensions = self.reader.expect_match(_DIMENSIONS, "static dimensions, such as [2,3]")[0]
        self.reader.expect("]")
        shape = tuple(int(n) for n in dimensions.split(",") if n.strip())
        if len(shape) > _LARGEST_RANK:
            self.reader.fail(f"rank {len(shape)} is more than {_LARGEST_RANK}", start)
        if max(math.prod(shape), *shape, 0) > self.limits.elements:
            self.reader.fail(
                f"a tensor of more than {self.limits.elements} elements (the limit `elements`)",
                start,
                ResourceLimitError,
            )
        self.layout(shape)
        return TensorType(ELEMENT_TYPES.get(element, F32), shape)

    def types(self, depth: int = 0) -> list[Type]:
        self.reader.expect("(")
        found: list[Type] = []
        while not self.reader.take(")"):
            if found:
                self.reader.expect(",", "between types")
            found.append(self.type(depth))
        return found

    def layout(self, shape: Shape) -> None:
        """`{1,0}` or `{1,0:T(8,128)}`, where it is given; a layout does not change what a program computes."""
        start = self.reader.at
        found = self.reader.match(_LAYOUT)
        self.order = tuple(range(len(shape)))
        if found is None:
            return
        order = [int(n) for n in found[1].split(",") if n]
        if sorted(order) != list(range(len(shape))):
            self.reader.fail(f"layout {found[0]} does not fit rank {len(shape)}", start)
        self.order = tuple(reversed(order))
