"""Which dimension of a model has the rows of a batch, and what code serves how many of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxla.runtime.padding import OutputRows
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature
from onnxla.serving.errors import InvalidRequestError
from onnxla.serving.model_config import ModelConfig
from onnxla.serving.rows import RowsPlan


@dataclass(frozen=True)
class Batch:
    """The dimension of the rows."""

    name: str
    inputs: Mapping[str, int]
    """Where the inputs that have it have it."""
    sizes: tuple[int, ...]
    """To compile for, ascending; the last is `max_batch_size`."""


def find_batch(signature: ModelSignature, config: ModelConfig) -> Batch:
    """Raises InvalidRequestError where there is none, or it is not clear which."""
    name = config.batch_dimension
    if not name:
        firsts = {t.shape[0] for t in signature.inputs if t.shape}
        names = sorted(n for n in firsts if isinstance(n, str))
        if len(names) != 1:
            found = f"are {', '.join(names)}" if names else "have a size, or no name"
            raise InvalidRequestError(
                f"max_batch_size: the first dimensions of the inputs {found}; the parameter batch_dimension names an "
                "open dimension of the model, or max_batch_size is left out"
            )
        name = names[0]
    inputs = {}
    for tensor in signature.inputs:
        places = [d for d, n in enumerate(tensor.shape or []) if n == name]
        if len(places) > 1:
            raise InvalidRequestError(f"batch_dimension: {tensor.name} has {name} twice")
        if places:
            inputs[tensor.name] = places[0]
    if not inputs:
        raise InvalidRequestError(f"batch_dimension: no input has a dimension {name!r}")
    return Batch(name, inputs, config.batch_sizes or powers_of_two(config.max_batch_size))


def powers_of_two(most: int) -> tuple[int, ...]:
    """1, 2, 4, ... and `most` itself."""
    return tuple(sorted({1 << k for k in range(most.bit_length()) if 1 << k <= most} | {most}))


def proven_rows(signature: ModelSignature, programs: Sequence[Program], batch: Batch, config: ModelConfig) -> RowsPlan:
    """What the compiler has proven of `programs`, which differ in rows alone.

    Raises InvalidRequestError where rows are to be put together and that is not proven.
    """
    paddings = [p.padding for p in programs if p.padding is not None and p.padding.name == batch.name]
    plain = [p for p in programs if p.padding is None]
    ranges = [(p.least, p.rows) for p in paddings]
    ranges += [(n, n) for n in (_rows(p, batch) for p in plain)]
    combines = bool(paddings) and all(p.combines for p in paddings) and all(_rows(p, batch) == 1 for p in plain)
    if config.batching is not None and config.max_batch_size > 1 and not combines:
        raise InvalidRequestError(
            f"dynamic_batching: it is not proven that rows along {batch.name} do not depend on one another in the code "
            "for all sizes; an artifact is compiled with pad_to_bucket, or leave dynamic_batching out, or set the "
            "parameter assume_independent_rows if you know better"
        )
    inputs = tuple(batch.inputs.get(t.name) for t in signature.inputs)
    outputs = paddings[0].outputs if paddings else (None,) * len(signature.outputs)
    return RowsPlan(inputs, outputs, tuple(sorted(ranges, key=lambda r: r[1])), combines)


def assumed_rows(signature: ModelSignature, batch: Batch, sizes: Sequence[int]) -> RowsPlan:
    """What the configuration says: rows are where a dimension has the name, in outputs too.

    Raises InvalidRequestError where no output has it.
    """
    outputs = []
    for tensor in signature.outputs:
        places = [d for d, n in enumerate(tensor.shape or []) if n == batch.name]
        if len(places) > 1 or tensor.shape is None:
            raise InvalidRequestError(f"assume_independent_rows: it is not clear where {tensor} has its rows")
        outputs.append(OutputRows(places[0], 1, 1) if places else None)
    if not any(outputs):
        raise InvalidRequestError(f"assume_independent_rows: no output has a dimension {batch.name!r}")
    inputs = tuple(batch.inputs.get(t.name) for t in signature.inputs)
    ordered = sorted(sizes)
    least = [1, *(n + 1 for n in ordered)]
    return RowsPlan(inputs, tuple(outputs), tuple(zip(least, ordered, strict=False)), True)


def _rows(program: Program, batch: Batch) -> int:
    return next(t.shape[batch.inputs[t.name]] for t in program.inputs if t.name in batch.inputs)
