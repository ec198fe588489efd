"""The inputs and outputs of a program: names, types, and the names of sizes that are left open."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxla.frontends.hlo.location import named_location
from onnxla.frontends.hlo.syntax import Argument, Form, Function, Operation, Program, Symbol, TensorForm
from onnxla.frontends.signature import Signature, TensorSpec

_NUMBERED = re.compile(r"(?a)arg\d+|\d+")


@dataclass(frozen=True)
class NamedForm:
    """An input or output: its declared type, and for each dimension its size or the name of it."""

    name: str
    form: Form
    dimensions: tuple[int | str, ...] = ()


def signature_of(program: Program) -> Signature:
    """The inputs and outputs of a program."""
    return Signature(tuple(map(_spec, inputs_of(program))), tuple(map(_spec, outputs_of(program))))


def inputs_of(program: Program) -> list[NamedForm]:
    """The arguments of @main, by the names that the debug information has for all of them, else those of the text."""
    arguments = program.main.body.arguments
    wrapped = _wrapped_arguments(program)
    given = [
        named_location(a.location, program) or named_location(w.location if w else "", program)
        for a, w in zip(arguments, wrapped, strict=True)
    ]
    written = [a.name.removesuffix("#0") for a in arguments]
    if all(_NUMBERED.fullmatch(name) for name in written):  # as MLIR counts, which it does over all functions at times
        written = [f"arg{k}" for k in range(len(written))]
    names = given if _are_names(given) else written
    sizes = _named_sizes(program)
    return [_named(n, a.form, sizes.get(a.name, {})) for n, a in zip(names, arguments, strict=True)]


def _wrapped_call(program: Program) -> tuple[Operation, Function] | None:
    """Where sizes are open, JAX's @main calls the function itself, with the sizes before the arguments."""
    calls = [o for o in program.main.body.operations if o.name == "func.call"]
    callee = calls[0].attributes.get("callee", calls[0].attributes.get("symbol")) if len(calls) == 1 else None
    function = program.functions.get(callee.name) if isinstance(callee, Symbol) else None
    if function is None or len(function.body.arguments) != len(calls[0].operands):
        return None
    return calls[0], function


def _wrapped_arguments(program: Program) -> list[Argument | None]:
    """For each argument of @main the one of the function it calls."""
    found = _wrapped_call(program)
    if found is None:
        return [None] * len(program.main.body.arguments)
    inside = dict(zip(found[0].operands, found[1].body.arguments, strict=True))
    return [inside.get(a.name) for a in program.main.body.arguments]


def _named_sizes(program: Program) -> dict[str, dict[int, str]]:
    """The names that JAX has for sizes (`jax.global_constant`), by argument of @main and dimension."""
    found = _wrapped_call(program)
    if found is None:
        return {}
    read = {o.results[0]: o for o in program.main.body.operations if o.name.endswith(".get_dimension_size")}
    sizes: dict[str, dict[int, str]] = {}
    for operand, argument in zip(found[0].operands, found[1].body.arguments, strict=True):
        name = argument.attributes.get("jax.global_constant")
        size = read.get(operand)
        if isinstance(name, str) and size is not None and size.operands:
            dimension = size.attributes.get("dimension", size.attributes.get("dim"))
            if isinstance(dimension, int):
                sizes.setdefault(size.operands[0], {})[dimension] = name
    return sizes


def outputs_of(program: Program) -> list[NamedForm]:
    """The results of @main, by the names that JAX gives them (`jax.result_info`), else numbered."""
    forms = program.main.result_forms
    attributes = list(program.main.result_attributes) or [{}] * len(forms)
    given = [str(a.get("jax.result_info", "")) if isinstance(a, dict) else "" for a in attributes]
    names = given if len(given) == len(forms) and _are_names(given) else [f"output_{k}" for k in range(len(forms))]
    return [_named(n, f) for n, f in zip(names, forms, strict=True)]


def _are_names(names: Sequence[str]) -> bool:
    return all(names) and len(set(names)) == len(names)


def _named(name: str, form: Form, sizes: Mapping[int, str] | None = None) -> NamedForm:
    if not isinstance(form, TensorForm):
        return NamedForm(name, form)
    names = sizes or {}
    return NamedForm(
        name, form, tuple(names.get(d, f"{name}.{d}") if n is None else n for d, n in enumerate(form.shape))
    )


def _spec(named: NamedForm) -> TensorSpec:
    if isinstance(named.form, TensorForm):
        return TensorSpec(named.name, named.form.element, named.dimensions, str(named.form))
    return TensorSpec(named.name, None, None, str(named.form))
