"""Do the parts of an artifact fit together? What is checked here need not be asked while a model runs."""

import math
from collections.abc import Iterable, Mapping, Sequence

from onnxla.errors import ArtifactError
from onnxla.runtime.program import Program
from onnxla.runtime.results import ChosenTextResult, MapsResult, Result, SequenceResult, TextResult
from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.runtime.tensors import Array, TensorSignature

_LARGEST = 1 << 62


def require_consistent(signature: ModelSignature, programs: Sequence[Program], state: Mapping[str, Array]) -> None:
    """Raise ArtifactError unless every program takes and gives what the signature says."""
    for tensor in (*signature.inputs, *signature.outputs):
        _require(all(not isinstance(n, int) or 0 <= n < _LARGEST for n in tensor.shape or ()), f"{tensor}")
    names = [t.name for t in signature.inputs]
    _require(len(set(names)) == len(names), "two inputs of one name")
    for program in programs:
        taken = [t.name for t in program.inputs]
        _require(len(set(taken)) == len(taken) and set(taken) <= set(names), f"a program takes {', '.join(taken)}")
        _require(program.vocabularies.keys() <= set(taken), "a list of words for no input")
        _require_fitting(program.inputs, signature.inputs, program.vocabularies)
        given = len(program.results or program.outputs)
        _require(given == len(signature.outputs), f"a program gives {given} of {len(signature.outputs)} outputs")
        padding = program.padding
        if padding is not None:
            fits = not program.results and padding.fits(program.inputs, program.outputs)
            _require(fits, f"a program is padded along {padding.name}")
        for result in program.results:
            _require_result(result, program.outputs)
        for variable in program.state:
            value = state.get(variable.name)
            fits = value is not None and value.shape == variable.shape and value.dtype == variable.dtype
            _require(fits, f"a program changes {variable}")


def _require_fitting(
    taken: Sequence[TensorSignature], declared: Iterable[ModelTensor], words: Mapping[str, Sequence[str]]
) -> None:
    by_name = {t.name: t for t in declared}
    for tensor in taken:
        wanted = by_name[tensor.name]
        fits = not wanted.mismatch(tensor.shape) and (tensor.name in words or wanted.dtype in (None, tensor.dtype))
        _require(fits, f"a program takes {tensor}")


def _require_result(result: Result, outputs: Sequence[TensorSignature]) -> None:
    match result:
        case TextResult(shape, strings):
            fits = all(n >= 0 for n in shape) and math.prod(shape) == len(strings)
            _require(fits, f"{len(strings)} strings of shape {list(shape)}")
        case MapsResult(index, keys):
            fits = len(outputs[index].shape) == 2 and outputs[index].shape[1] == len(keys)
            _require(fits, f"{len(keys)} keys for the columns of {outputs[index]}")
        case ChosenTextResult(index):
            _require(outputs[index].dtype.kind in "iu", f"places {outputs[index]}")
        case SequenceResult(elements):
            for element in elements:
                _require_result(element, outputs)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ArtifactError(f"the manifest is malformed: {what[:200]}")
