"""What a run is given, by name or position: checked against the model's signature before anything runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from onnxla.errors import InputError
from onnxla.runtime.arrays import native_array
from onnxla.runtime.program import Program
from onnxla.runtime.results import TensorResult
from onnxla.runtime.signature import STRINGS, ModelSignature
from onnxla.runtime.tensors import Array
from onnxla.runtime.vocabulary import as_text, is_text

Out: TypeAlias = Mapping[str, Any] | Sequence[Any] | None
"""Arrays that receive results: of numpy, or on a GPU."""


class Arguments:
    """The names of a model's inputs and outputs, and what may be given for them."""

    def __init__(self, signature: ModelSignature, constants: Mapping[str, Array]) -> None:
        """`constants` are values of inputs that were fixed when compiling; a run may leave them out."""
        self.signature = signature
        self.input_names = [t.name for t in signature.inputs]
        self.output_names = [t.name for t in signature.outputs]
        self.output_index = {name: k for k, name in enumerate(self.output_names)}
        self._constants = dict(constants)

    def by_position(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The values in the order of the inputs. Raises InputError that lists the names that are wrong or missing."""
        names = self.input_names
        if type(feeds) is not dict and not isinstance(feeds, Mapping):
            raise InputError(f"the inputs must be arrays by name, not {type(feeds).__name__}")
        if len(feeds) == len(names):
            try:
                return [*map(feeds.__getitem__, names)]
            except KeyError:
                pass
        missing = [n for n in names if n not in feeds]
        unknown = [str(n) for n in feeds if n not in names and n not in self._constants]
        if not missing and not unknown:
            self._require_constants(feeds)
            return [feeds[name] for name in names]
        problems = [f"missing inputs: {', '.join(missing)}"] if missing else []
        fixed = [n for n in unknown if n in self.signature.defaults]
        foreign = [n for n in unknown if n not in fixed]
        problems += [f"not inputs of the model: {', '.join(foreign)}"] if foreign else []
        problems += [
            f"{name} has a value in the model, which the code was made for; to replace it, give it in constants= when "
            "compiling"
            for name in fixed
        ]
        raise InputError(
            "\n".join([*problems, f"the model takes {', '.join(map(str, self.signature.inputs)) or 'none'}"])
        )

    def _require_constants(self, feeds: Mapping[str, Any]) -> None:
        """Raise InputError where a feed differs from the value that the code was made for."""
        problems = [
            f"{name}: the model was compiled for the value {np.array2string(value, threshold=8)}; "
            "leave it out of constants= when compiling to choose it when running"
            for name, value in self._constants.items()
            if name in feeds and not np.array_equal(_plain(name, feeds[name]), value)
        ]
        if problems:
            raise InputError("\n".join(problems))

    def require_outputs(self, names: Iterable[str]) -> None:
        """Raise InputError for names that are no outputs."""
        unknown = [str(n) for n in names if n not in self.output_index]
        if unknown:
            raise InputError(f"not outputs of the model: {', '.join(unknown)}; it gives {', '.join(self.output_names)}")

    def out_by_position(self, names: Sequence[str], out: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
        """`out` as one entry for each output of the model."""
        if not isinstance(out, Mapping):
            if len(out) != len(names):
                raise InputError(f"{len(out)} arrays in out for {len(names)} results")
            out = {name: array for name, array in zip(names, out, strict=True) if array is not None}
        self.require_outputs(out)
        return [out.get(name) for name in self.output_names]

    def native_out(self, program: Program, out: Sequence[Any]) -> list[Any]:
        """`out` as one entry for each tensor of the native code. Raises InputError for what is not a tensor."""
        targets: list[Any] = [None] * len(program.outputs)
        for name, result, target in zip(self.output_names, program.results, out, strict=True):
            if isinstance(result, TensorResult):
                targets[result.index] = target
            elif target is not None:
                raise InputError(f"{name}: out= takes tensors of numbers, and this output is none")
        return targets

    def arrays(self, values: Sequence[Any]) -> dict[str, Array]:
        """The inputs as arrays of the declared dtypes that fit the declared shapes. Raises InputError."""
        arrays: dict[str, Array] = {}
        problems: list[str] = []
        for tensor, value in zip(self.signature.inputs, values, strict=True):
            try:
                dtype = tensor.dtype
                array = np.asarray(value) if dtype is None else native_array(value, tensor.name, dtype)
                if tensor.type == STRINGS:
                    array = as_text(tensor.name, array)
            except InputError as error:
                problems.append(str(error))
                continue
            arrays[tensor.name] = array
            problems += filter(None, [tensor.mismatch(array.shape)])
        if problems:
            raise InputError("\n".join(problems))
        return arrays


def _plain(name: str, value: Any) -> Array:
    array = np.asarray(value)
    return as_text(name, array) if is_text(array) else array
