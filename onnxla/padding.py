"""Batches padded to the next size that there is code for: proven possible when compiling, size by size.

For each number of rows that would be padded the model is imported, and the import compared with that for the program's
own number (`passes/row_independence.py`). Nothing is compiled for it, so a size costs a fraction of a second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnxla import watch
from onnxla.errors import CompileError, InputError
from onnxla.passes.row_independence import prove_rows
from onnxla.passes.row_rules import Sizes
from onnxla.passes.rows import Rows
from onnxla.runtime.padding import OutputRows, Padding
from onnxla.runtime.program import GPU_TRIPLE, Program
from onnxla.sources import Shapes, Source


def with_padding(
    source: Source,
    program: Program,
    shapes: Shapes,
    dims: Mapping[str, Sequence[int]],
    sizes: Mapping[str, int],
    name: str,
) -> Program:
    """`program`, made for `sizes`, as one that also takes less of the dimension `name`, down to what the next smaller
    size of `dims` serves. The padding also says whether its rows are those that the program of that smaller size gives.

    Raises InputError where padding is not for this model or target, CompileError where independence is not proven.
    """
    rows, least = sizes[name] if name in sizes else 0, _least(dims, sizes, name)
    _require_plain(program, name)
    inputs = _rows_of_inputs(source, program, shapes, sizes, name)
    if rows <= 1:
        return program
    outputs: tuple[Rows | None, ...] | None = None
    combines = True
    with watch.span(f"rows along {name}", 0.9, 1.0):
        large = source.load(shapes, sizes, {}).module
        smaller = least - 1  # which has code of its own, where it is not 0
        counts = range(max(smaller, 1), rows)
        for done, fewer in enumerate(counts):
            watch.part_done(done / len(counts))
            try:
                small = source.load(shapes, {**sizes, name: fewer}, {}).module
                found = prove_rows(large, small, Sizes(rows, fewer), {k: d for k, (_, d) in inputs.items()}, name)
            except CompileError:
                if fewer != smaller:
                    raise
                combines = False
                continue
            if outputs not in (None, found):
                raise CompileError(f"batches cannot be padded along {name}: an output has its rows in several places")
            outputs = found
    if outputs is None:
        return program
    places = tuple(None if o is None else OutputRows(o.dimension, o.outer, o.inner) for o in outputs)
    return replace(program, padding=Padding(name, rows, least, dict(inputs.values()), places, combines))


def _least(dims: Mapping[str, Sequence[int]], sizes: Mapping[str, int], name: str) -> int:
    """The fewest rows that are padded to `sizes[name]`."""
    if name not in dims:
        raise InputError(f"pad_to_bucket={name!r}: give it sizes, such as dims={{{name!r}: [1, 8, 32]}}")
    return max((n for n in dims[name] if n < sizes[name]), default=0) + 1


def _require_plain(program: Program, name: str) -> None:
    reasons = [
        ("for target='gpu', whose inputs may be on the device", program.triple == GPU_TRIPLE),
        ("for a model with a state, which rows share", bool(program.state)),
        ("for outputs that are no tensors", bool(program.results)),
    ]
    for reason, applies in reasons:
        if applies:
            raise InputError(f"pad_to_bucket={name!r} is not {reason}")


def _rows_of_inputs(
    source: Source, program: Program, shapes: Shapes, sizes: Mapping[str, int], name: str
) -> dict[int, tuple[str, int]]:
    """By position, the inputs that have the dimension: their names, and where it is. Raises InputError without any."""
    others = {n: size for n, size in sizes.items() if n != name}
    declared = {t.name: t.shape or [] for t in source.signature(others, shapes).inputs}
    found: dict[int, tuple[str, int]] = {}
    for k, tensor in enumerate(program.inputs):
        places = [d for d, n in enumerate(declared.get(tensor.name, [])) if n == name]
        if len(places) > 1:
            raise InputError(f"pad_to_bucket={name!r}: {tensor.name} has this dimension twice")
        if places:
            found[k] = (tensor.name, places[0])
    if not found:
        raise InputError(f"pad_to_bucket={name!r}: no input has this dimension")
    return found
