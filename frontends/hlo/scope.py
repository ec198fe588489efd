"""The values of one computation that is being built, and the regions and functions inside it.

HLO's computations see nothing but their parameters. A region that reads values from around it gets them as further
parameters (loops, branches), or as copies where they are constants.
"""

from collections.abc import Iterable, Sequence

from onnxla.errors import HloError, Problem, ResourceLimitError, ShapeError, SourceNode, UnsupportedOpError
from onnxla.frontends.hlo.location import name_in
from onnxla.frontends.hlo.operation_view import OperationView, Rejected
from onnxla.frontends.hlo.registry import lookup
from onnxla.frontends.hlo.session import Session
from onnxla.frontends.hlo.syntax import Argument, Function, Operation, Region, TensorForm, TupleForm
from onnxla.frontends.hlo.unknown_operations import unknown_operation
from onnxla.frontends.problems import FOR_HLO
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.shape import Broadcast
from onnxla.hlo.ops.structural import Constant, Iota
from onnxla.hlo.types import TensorType, TupleType, Type

_COPIED_ELEMENTS = 16
"""Integers of at most so many elements are known inside regions too: they may decide shapes."""


class Scope:
    """Names to values, in one computation."""

    def __init__(self, session: Session, builder: Builder, outer: "Scope | None" = None) -> None:
        self.session = session
        self.builder = builder
        self.values: dict[str, Instruction | None] = {}
        """None for a value that a rejected operation would have given."""
        self.outer = outer

    # Values

    def lookup(self, name: str, at: int) -> Instruction:
        """Raises Rejected for a value that there is not, and without a problem for one that was rejected."""
        value = self.found(name, at)
        if value is None:
            raise Rejected(None)
        return value

    def found(self, name: str, at: int) -> Instruction | None:
        """The same; None for a value that was rejected."""
        if name not in self.values and self.outer is not None:
            self.values[name] = self._copied(name, at)
        if name not in self.values:
            shown = name.removesuffix("#0")
            cause = f"no value above is called %{shown}"
            if self.outer is not None:
                cause = f"%{shown} is no constant, and a region over scalars reads it from around it"
            where = (("at", self.session.program.place(at).strip().partition("\n")[0]),)
            kind = ShapeError if self.outer is None else UnsupportedOpError
            raise Rejected(Problem(kind, cause, None, where, FOR_HLO[kind]))
        return self.values[name]

    def _copied(self, name: str, at: int) -> Instruction | None:
        assert self.outer is not None
        outside = self.outer.lookup(name, at)
        inside = copied_constant(self.session, outside, self.builder)
        if inside is None:
            self.values.pop(name, None)
            shown = name.removesuffix("#0")
            where = (("at", self.session.program.place(at).strip().partition("\n")[0]),)
            cause = f"%{shown} is no constant, and a region over scalars reads it from around it"
            raise Rejected(Problem(UnsupportedOpError, cause, None, where, FOR_HLO[UnsupportedOpError]))
        return inside

    # Operations

    def block(self, operations: Sequence[Operation]) -> list[Instruction]:
        """Import operations; the operands of the one that returns. Raises Rejected where one of those was rejected."""
        for operation in operations[:-1]:
            self.operation(operation)
        last = operations[-1] if operations else None
        if last is None or not last.name.endswith(".return"):
            cause = "a function or region does not end with a return"
            raise Rejected(Problem(ShapeError, cause, hint=FOR_HLO[ShapeError]))
        return [self.lookup(name, last.at) for name in last.operands]

    def operation(self, operation: Operation) -> None:
        """Import one operation, or note why not."""
        session = self.session
        source = SourceNode(name_in(operation, session.program), operation.name)
        session.count_node(operation.name, source.name)
        results: Sequence[Instruction | None] = [None] * len(operation.results)
        try:
            operands = [self.found(name, operation.at) for name in operation.operands]
            view = OperationView(operation, operands, source, self)
            results = self._imported(view)
        except Rejected as rejected:
            session.note(rejected.problem)
            self._look_into(operation)
        except ResourceLimitError:
            raise
        except HloError as error:
            session.note(Problem(ShapeError, str(error), source, view.place, FOR_HLO[ShapeError]))
        for name, value in zip(operation.results, results, strict=True):
            if not name:
                continue
            if name in self.values:
                where = (("at", session.program.place(operation.at).strip().partition("\n")[0]),)
                cause = f"a second value is called %{name.removesuffix('#0')}"
                session.note(Problem(ShapeError, cause, source, where, FOR_HLO[ShapeError]))
            self.values[name] = value

    def _look_into(self, operation: Operation) -> None:
        """Name the unknown operations in the regions of one that was rejected: they may not have been imported."""
        for region in operation.regions:
            for inner in region.walk():
                if lookup(inner.name) is None and not inner.name.endswith(".return"):
                    source = SourceNode(name_in(inner, self.session.program), inner.name)
                    self.session.note(unknown_operation(OperationView(inner, (), source, self)))

    def _imported(self, view: OperationView) -> Sequence[Instruction]:
        operation = view.operation
        rule = lookup(operation.name)
        if rule is None:
            raise Rejected(unknown_operation(view))
        for k, (operand, form) in enumerate(zip(view.given, operation.operand_forms or (), strict=False)):
            if operand is not None and not _fits(form, operand.type):
                view.shape_error(f"operand {k} is declared as {form}, and is {operand.type}")
        with self.builder.at(view.source):
            made = rule(view, self.builder)
        results = [made] if isinstance(made, Instruction) else list(made)
        if len(results) != len(operation.result_forms):
            view.shape_error(f"the text has {len(operation.result_forms)} results, the operation {len(results)}")
        for k, (result, form) in enumerate(zip(results, operation.result_forms, strict=True)):
            if not _fits(form, result.type):
                view.shape_error(f"result {k} is declared as {form}, and is {result.type}")
        return results

    # Regions and functions

    def combiner(self, view: OperationView, region: Region) -> Computation:
        """A region whose arguments are parameters."""
        inner = Scope(self.session, Builder(view.operation.name.partition(".")[2], view.source), self)
        inner.bind(region.arguments, [inner.builder.parameter(type_of_form(a.form, view)) for a in region.arguments])
        results = inner.block(region.operations)
        return inner.builder.build(results[0] if len(results) == 1 else inner.builder.tuple(*results))

    def over_tuple(
        self, view: OperationView, region: Region, carried: Sequence[Type], captured: Sequence[str], name: str
    ) -> "tuple[Scope, list[Instruction], list[Instruction]]":
        """A scope of a computation with one tuple as parameter: of the carried values, then the captured ones.

        Also what the region returns, and the elements of the parameter that stand for the captured values.
        """
        outside = [self.lookup(n, view.operation.at) for n in captured]
        inner = Scope(self.session, Builder(name, view.source), self)
        state = inner.builder.parameter(TupleType((*carried, *(o.type for o in outside))), "state")
        elements = [inner.builder.get_tuple_element(state, k) for k in range(len(carried) + len(outside))]
        inner.bind(region.arguments, elements[: len(carried)])
        taken = elements[len(carried) :]
        inner.values |= dict(zip(captured, taken, strict=True))
        return inner, inner.block(region.operations), taken

    def captured(self, regions: Iterable[Region]) -> list[str]:
        """The values from around that regions read, without the constants, which they get as copies."""
        names: dict[str, None] = {}
        for region in regions:
            names |= dict.fromkeys(free_names(region))
        return [n for n in names if not self._is_copied(n)]

    def _is_copied(self, name: str) -> bool:
        value = self.values.get(name)
        return value is not None and copied_constant(self.session, value, Builder()) is not None

    def bind(self, arguments: Sequence[Argument], values: Sequence[Instruction | None]) -> None:
        if len(arguments) != len(values):
            where = f"a region takes {len(arguments)} arguments and gets {len(values)} values"
            raise Rejected(Problem(ShapeError, where, hint=FOR_HLO[ShapeError]))
        for argument, value in zip(arguments, values, strict=True):
            if value is not None and not _fits(argument.form, value.type):
                cause = f"%{argument.name.removesuffix('#0')} is declared as {argument.form}, and is {value.type}"
                raise Rejected(Problem(ShapeError, cause, hint=FOR_HLO[ShapeError]))
            self.values[argument.name] = value

    def call(
        self, view: OperationView, function: Function, arguments: Sequence[Instruction | None]
    ) -> list[Instruction]:
        """The results of a function: a computation of its own, or in place where it leaves sizes open.

        Arguments that were rejected are None: the function is imported for its problems all the same.
        """
        session = self.session
        if function.name in session.calling:
            view.unsupported(f"@{function.name} calls itself")
        if len(session.calling) >= session.limits.nesting:
            raise ResourceLimitError(f"calls nest deeper than {session.limits.nesting} (the limit `nesting`)")
        session.calling.append(function.name)
        try:
            if function.is_dynamic:
                inside = Scope(session, self.builder)
                inside.bind(function.body.arguments, arguments)
                return inside.block(function.body.operations)
            computation = self._computation(function, view)
        finally:
            session.calling.pop()
        given = [a for a in arguments if a is not None]
        if computation is None or len(given) < len(arguments):
            raise Rejected(None)
        result = self.builder.call(computation, *given)
        count = len(function.result_forms)
        return [result] if count == 1 else [self.builder.get_tuple_element(result, k) for k in range(count)]

    def _computation(self, function: Function, view: OperationView) -> Computation | None:
        functions = self.session.functions
        if function.name not in functions:
            functions[function.name] = None
            inner = Scope(self.session, Builder(function.name, view.source))
            try:
                arguments = function.body.arguments
                inner.bind(arguments, [inner.builder.parameter(type_of_form(a.form, view)) for a in arguments])
                results = inner.block(function.body.operations)
            except Rejected as rejected:
                self.session.note(rejected.problem)
            else:
                root = results[0] if len(results) == 1 else inner.builder.tuple(*results)
                functions[function.name] = inner.builder.build(root)
        return functions[function.name]


def type_of_form(form: object, view: OperationView) -> Type:
    """A type of the text as HLO's."""
    if isinstance(form, TensorForm) and form.is_static:
        return TensorType(form.element, tuple(n or 0 for n in form.shape))
    if isinstance(form, TupleForm):
        return TupleType(tuple(type_of_form(e, view) for e in form.elements))
    view.unsupported(f"an argument of type {form}")


def _fits(form: object, type: Type) -> bool:
    if isinstance(form, TupleForm):
        return (
            isinstance(type, TupleType)
            and len(form.elements) == len(type.elements)
            and all(map(_fits, form.elements, type.elements))
        )
    return isinstance(form, TensorForm) and form.fits(type)


def copied_constant(session: Session, value: Instruction, b: Builder) -> Instruction | None:
    """`value` again, made with `b`, where it is a constant, one repeated, or an iota; None for others."""
    op = value.op
    if isinstance(op, (Constant, Iota)):
        return b.emit(op)
    if isinstance(op, Broadcast) and isinstance(value.operands[0].op, Constant):
        return b.emit(op, b.emit(value.operands[0].op))
    type = value.type
    if isinstance(type, TensorType) and type.element.is_integer and type.size <= _COPIED_ELEMENTS:
        known = session.known_value(value)
        return None if known is None else b.constant(known)
    return None


def free_names(region: Region) -> dict[str, None]:
    """The values that a region reads and does not define, in the order they are read. Regions nest a limited depth."""
    defined = {a.name for a in region.arguments}
    free: dict[str, None] = {}
    for operation in region.operations:
        free |= dict.fromkeys(n for n in operation.operands if n not in defined)
        for inner in operation.regions:
            free |= dict.fromkeys(n for n in free_names(inner) if n not in defined)
        defined.update(operation.results)
    return free
