"""Run a model on zeros, so that the first real run finds its code, its weights, its threads and its memory ready."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.profiler import new_profile
from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.runtime.specialisations import Choice, Specialisations
from onnxla.runtime.tensors import Array

Sizes = Mapping[str, Sequence[int]]


def warm_up(
    specialisations: Specialisations,
    signature: ModelSignature,
    threads: int,
    feeds: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int]],
    dims: Sizes,
) -> int:
    """See `CompiledModel.warm_up`."""
    unknown = sorted({*feeds, *shapes} - {t.name for t in signature.inputs})
    if unknown:
        raise InputError(f"not inputs of the model: {', '.join(unknown)}")
    runs = 0
    for arrays in _sets_of_arrays(specialisations, signature, feeds, shapes, dims):
        choice = specialisations.choose(arrays)
        decisive = [name for name in choice.executable.program.constants if name in arrays and name not in feeds]
        if decisive:
            raise InputError(f"the code depends on the value of {', '.join(decisive)}; give it in feeds")
        _run(choice, arrays, threads)
        runs += 1
    return runs


def _sets_of_arrays(
    specialisations: Specialisations,
    signature: ModelSignature,
    feeds: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int]],
    dims: Sizes,
) -> Iterator[dict[str, Array]]:
    """The inputs of each run."""
    if not (shapes or dims or feeds) and not all(t.is_static for t in signature.inputs):
        if not specialisations.executables:
            raise InputError("nothing is compiled yet, and sizes are open: give shapes or dims to compile for")
        for program in specialisations.programs:
            known = {t.name: t.shape for t in program.inputs} | {n: v.shape for n, v in program.constants.items()}
            yield {
                t.name: program.constants.get(t.name, _zeros(t, known[t.name]))
                for t in signature.inputs
                if t.name in known
            }
        return
    for sizes in itertools.product(*dims.values()):
        chosen = dict(zip(dims, sizes, strict=True))
        yield {t.name: _array(t, feeds, shapes, chosen) for t in signature.inputs}


def _array(tensor: ModelTensor, feeds: Mapping[str, Any], shapes: Mapping[str, Sequence[int]], dims: Any) -> Array:
    """One input: as it is fed, or zeros of the shape that is given. Raises InputError where a size is missing."""
    if tensor.name in feeds:
        return np.asarray(feeds[tensor.name], tensor.dtype)
    shape: Sequence[Any] | None = shapes.get(tensor.name, tensor.shape)
    if shape is not None:
        shape = [dims.get(n, n) if isinstance(n, str) else n for n in shape]
    if shape is None or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise InputError(f"{tensor}: a size is missing; give it in shapes or dims")
    reason = tensor.mismatch(tuple(shape))
    if reason:
        raise InputError(reason)
    return _zeros(tensor, tuple(shape))


def _zeros(tensor: ModelTensor, shape: tuple[int, ...]) -> Array:
    return np.full(shape, "", object) if tensor.dtype is None else np.zeros(shape, tensor.dtype)


def _run(choice: Choice, arrays: Mapping[str, Array], threads: int) -> None:
    """Run as a profile does, which leaves the state as it was."""
    program = choice.executable.program
    if choice.rows is not None and program.padding is not None:
        arrays = {name: program.padding.padded(name, array) for name, array in arrays.items()}
    values = [arrays[t.name] for t in program.inputs]
    profile = new_profile(len(program.steps)) if program.state else None
    choice.executable.run(values, threads, profile=profile)
