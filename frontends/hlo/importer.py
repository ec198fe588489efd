"""A StableHLO program to an HLO module: the entry's parameters are the arguments of @main, its root their results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.config import CompileOptions, Limits
from onnxla.errors import (
    CompileError,
    InputError,
    Problem,
    ResourceLimitError,
    ShapeError,
    SourceNode,
    UnboundDimensionsError,
    raise_problems,
)
from onnxla.frontends.hlo import rules  # noqa: F401  registers the import rules
from onnxla.frontends.hlo.operation_view import Rejected
from onnxla.frontends.hlo.scope import Scope
from onnxla.frontends.hlo.session import Session
from onnxla.frontends.hlo.signature import NamedForm, inputs_of, outputs_of
from onnxla.frontends.hlo.syntax import OtherForm, Program, TensorForm, TupleForm
from onnxla.frontends.problems import FOR_HLO
from onnxla.frontends.signature import TensorSpec
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction, Module
from onnxla.hlo.types import Array, TensorType, type_of


@dataclass(frozen=True)
class ImportedHlo:
    """A module, with the names of its parameters and of the elements of its root."""

    module: Module
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


def import_program(
    program: Program,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, Array] | None = None,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
) -> ImportedHlo:
    """The module for input shapes. `constants` gives values of inputs, which are then no parameters.

    Raises a CompileError with every problem, UnboundDimensionsError while a dimension has no size, InputError for names
    that there are not, ResourceLimitError.
    """
    options, limits = options or CompileOptions.from_environment(), limits or Limits.from_environment()
    shapes, dims, constants = shapes or {}, dims or {}, constants or {}
    session = Session(program, options, limits)
    forms = inputs_of(program)
    _require_names(forms, shapes, constants)
    types = _bound(forms, shapes, dims, constants)
    builder = Builder(program.main.name)
    scope = Scope(session, builder)
    arguments: list[Instruction] = []
    inputs: list[TensorSpec] = []
    for form in forms:
        if form.name in constants:
            arguments.append(builder.constant(constants[form.name], name=form.name))
        else:
            inputs.append(_spec(form.name, types[form.name]))
            arguments.append(builder.parameter(types[form.name], form.name))
    results: list[Instruction] = []
    try:
        scope.bind(program.main.body.arguments, arguments)
        session.calling.append(program.main.name)
        results = scope.block(program.main.body.operations)
    except Rejected as rejected:
        session.note(rejected.problem)
    except RecursionError:
        raise ResourceLimitError("functions and regions nest too deeply; Limits(nesting=...) bounds them") from None
    raise_problems(session.problems)
    _require_results(program, results)
    names = [o.name for o in outputs_of(program)]
    outputs = tuple(_spec(n, r.tensor_type) for n, r in zip(names, results, strict=True))
    module = Module(program.name, builder.build(builder.tuple(*results)))
    return ImportedHlo(module, tuple(inputs), outputs)


def _spec(name: str, type: TensorType) -> TensorSpec:
    return TensorSpec(name, type.element, type.shape, str(type))


def try_import(program: Program, **how: object) -> tuple[Problem, ...]:
    """Every problem that an import meets."""
    try:
        import_program(program, **how)  # type: ignore[arg-type]
    except CompileError as error:
        return error.problems
    return ()


def _require_names(
    forms: Sequence[NamedForm], shapes: Mapping[str, Sequence[int]], constants: Mapping[str, Array]
) -> None:
    names = {f.name for f in forms}
    unknown = sorted((shapes.keys() | constants.keys()) - names)
    if unknown:
        raise InputError(
            f"the program has no input {', '.join(unknown)}; it takes {', '.join(sorted(names)) or 'none'}"
        )


def _bound(
    forms: Sequence[NamedForm],
    shapes: Mapping[str, Sequence[int]],
    dims: Mapping[str, int],
    constants: Mapping[str, Array],
) -> dict[str, TensorType]:
    """The inputs' types, all sizes known."""
    types: dict[str, TensorType] = {}
    problems: list[Problem] = []
    for named in forms:
        form = named.form
        if not isinstance(form, TensorForm):
            kind = (
                "a tuple" if isinstance(form, TupleForm) else str(form) if isinstance(form, OtherForm) else "no tensor"
            )
            cause = f"the input {named.name} is {kind}; inputs must be tensors"
            problems.append(Problem(ShapeError, cause, hint="let @main take the tensors in it one by one"))
            continue
        if named.name in constants:
            if not form.fits(type_of(np.asarray(constants[named.name]))):
                raise InputError(f"the value given for {named.name} is not {form}")
            continue
        sizes = list(form.shape)
        if named.name in shapes:
            given = [int(n) for n in shapes[named.name]]
            if not form.fits(TensorType(form.element, tuple(given))):
                raise InputError(f"the shape {given} given for {named.name} does not fit {form}")
            sizes = list(given)
        else:
            sizes = [dims.get(d, n) if isinstance(d, str) else n for d, n in zip(named.dimensions, sizes, strict=True)]
        if None in sizes:
            open_names = [d for d, n in zip(named.dimensions, sizes, strict=True) if n is None]
            problems.append(
                Problem(
                    UnboundDimensionsError,
                    f"the input {named.name} {form} has dimensions without a size",
                    hint=f"give dims={{{', '.join(f'{d!r}: 1' for d in open_names)}}}",
                )
            )
            continue
        types[named.name] = TensorType(form.element, tuple(n or 0 for n in sizes))
    raise_problems(problems)
    return types


def _require_results(program: Program, results: Sequence[Instruction]) -> None:
    source = SourceNode(f"@{program.main.name}", "func.func")
    forms = program.main.result_forms
    if len(forms) != len(results):
        raise ShapeError(
            [
                Problem(
                    ShapeError,
                    f"@main gives {len(results)} results, and declares {len(forms)}",
                    source,
                    hint=FOR_HLO[ShapeError],
                )
            ]
        )
    for k, (form, result) in enumerate(zip(forms, results, strict=True)):
        if not isinstance(form, TensorForm) or not form.fits(result.type):
            cause = f"result {k} of @main is declared as {form}, and is {result.type}"
            raise ShapeError([Problem(ShapeError, cause, source, hint=FOR_HLO[ShapeError])])
