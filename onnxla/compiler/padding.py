"""Batches padded to the next size that there is code for: proven possible when compiling, size by size.

For each number of rows that would be padded the model is imported, and the import compared with that for the program's
own number (`passes/row_independence.py`). Nothing is compiled for it, so a size costs a fraction of a second.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from onnxla import watch
from onnxla.compiler.sources import Shapes, Source
from onnxla.errors import CompileError, InputError
from onnxla.hlo.module import Module
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.types import Array, TensorType, TupleType, Type
from onnxla.passes.row_independence import prove_rows
from onnxla.passes.row_rules import Sizes
from onnxla.passes.rows import Rows
from onnxla.runtime.padding import OutputRows, Padding
from onnxla.runtime.program import GPU_TRIPLE, Program


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
    proof = _Proof(source, shapes, sizes, name, {k: d for k, (_, d) in inputs.items()})
    with watch.span(f"rows along {name}", 0.9, 1.0):
        for done, fewer in enumerate(range(least, rows)):
            watch.part_done(done / (rows - least))
            proof.require(rows, fewer)
        combines = least == 1 or _combines(proof, rows, least - 1)
    if proof.outputs is None:
        return program
    places = tuple(None if o is None else OutputRows(o.dimension, o.outer, o.inner) for o in proof.outputs)
    return replace(program, padding=Padding(name, rows, least, dict(inputs.values()), places, combines))


class _Proof:
    """What is proven of a model's rows, of one number of them after the other."""

    def __init__(
        self, source: Source, shapes: Shapes, sizes: Mapping[str, int], name: str, inputs: Mapping[int, int]
    ) -> None:
        self._source, self._shapes, self._sizes, self._name, self._inputs = source, shapes, sizes, name, inputs
        self._largest: tuple[int, Module] | None = None
        self.outputs: tuple[Rows | None, ...] | None = None
        """Where the rows are in each output; None before anything is proven."""

    def module(self, rows: int) -> Module:
        return self._source.load(self._shapes, {**self._sizes, self._name: rows}, {}).module

    def large(self, rows: int) -> Module:
        if self._largest is None or self._largest[0] != rows:
            self._largest = (rows, self.module(rows))
        return self._largest[1]

    def require(self, rows: int, fewer: int) -> None:
        """The first rows of the program for `rows` are those of the one for `fewer`. Raises CompileError."""
        found = prove_rows(self.large(rows), self.module(fewer), Sizes(rows, fewer), self._inputs, self._name)
        if self.outputs not in (None, found):
            raise CompileError(f"batches cannot be padded along {self._name}: an output has its rows in several places")
        self.outputs = found


def _combines(proof: _Proof, rows: int, smaller: int) -> bool:
    """Whether the program for `rows` gives each row as the one for `smaller`, which has code of its own, does.

    With one row nothing need be repeated for each, so that program is another: then all that both compute, but for how
    it is laid out, their constants, and the types of the results must be the same. Two rows are compared with three, so
    that there is a proof for them too.
    """
    try:
        if smaller > 1:
            proof.require(rows, smaller)
            return True
        if proof.outputs is None:
            proof.require(rows + 1, rows)
        one, large = proof.module(1), proof.large(rows)
    except CompileError:
        return False
    if _work(one) != _work(large) or not _same_constants(one, large, rows):
        return False
    return all(
        type(a) is type(b) and a.element is b.element and a.shape == _cut(b.shape, rows, place)
        for a, b, place in zip(_types(one), _types(large), proof.outputs or (), strict=True)
        if isinstance(a, TensorType) and isinstance(b, TensorType)
    )


_LAYOUT = ("broadcast", "reshape", "transpose", "constant")


def _work(module: Module) -> Counter[str]:
    """How often each operation is there that computes anything."""
    names = Counter(i.op.opcode for c in module.computations() for i in c.instructions())
    return Counter({name: count for name, count in names.items() if name not in _LAYOUT})


def _same_constants(one: Module, large: Module, rows: int) -> bool:
    """Whether the values of the constants are the same, whatever their shape; `large` may repeat one for each row."""
    known, found = {_digest(a) for a in _constants(one)}, set()
    for array in _constants(large):
        digest = _digest(array)
        if digest not in known and array.shape[:1] == (rows,) and len({_digest(row) for row in array}) == 1:
            digest = _digest(array[:1])
        found.add(digest)
    return known == found


def _constants(module: Module) -> list[Array]:
    operations = [i.op for c in module.computations() for i in c.instructions()]
    return [op.literal.array for op in operations if isinstance(op, Constant)]


def _digest(array: Array) -> bytes:
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.sha256(str(array.dtype).encode() + b" " + content.tobytes()).digest()


def _types(module: Module) -> Sequence[Type]:
    root = module.entry.root.type
    return root.elements if isinstance(root, TupleType) else (root,)


def _cut(shape: tuple[int, ...], rows: int, place: Rows | None) -> tuple[int, ...]:
    """The shape of an output with one row."""
    if place is None:
        return shape
    return (*shape[: place.dimension], shape[place.dimension] // rows, *shape[place.dimension + 1 :])


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
