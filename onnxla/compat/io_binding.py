"""IOBinding: arrays that stay bound to inputs and outputs from run to run, in this process' memory or on a GPU."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from onnxla.compat.device_memory import at_address, on_host, require_device
from onnxla.compat.model import SessionModel
from onnxla.compat.ort_value import OrtValue, value_of
from onnxla.errors import InputError


class Session(Protocol):
    """What a binding needs of an `InferenceSession`."""

    _model: SessionModel


class IOBinding:
    """What the next `run_with_iobinding` reads and writes. One thread uses it at a time."""

    def __init__(self, session: Session) -> None:
        model = session._model
        self._input_names = {arg.name for arg in (*model.inputs, *model.overridable)}
        self._output_names = {arg.name for arg in model.outputs}
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        """The array that each output is written to, or its device."""
        self._results: list[Any] = []

    # Inputs

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """An array, read by every run as it is then. Raises RuntimeError for a name that is no input."""
        self._inputs[self._require(name, self._input_names)] = arr_on_cpu

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Memory by its address, which must stay there. `element_type` is numpy's type or ONNX's number."""
        number = require_device(device_type, device_id)
        self._inputs[self._require(name, self._input_names)] = at_address(number, element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._inputs[self._require(name, self._input_names)] = ortvalue

    def synchronize_inputs(self) -> None:
        """Accepted: runs come after what was asked for on the streams of their inputs."""

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    # Outputs

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Where an output goes: to fresh memory on a device, or to memory by its address.

        Raises RuntimeError for a name that is no output, ValueError for an address without type or shape.
        """
        number = require_device(device_type, device_id)
        self._require(name, self._output_names)
        if buffer_ptr is None:
            self._outputs[name] = "cpu" if number is None else "cuda"
        elif element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        else:
            self._outputs[name] = at_address(number, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """The output is written over this tensor."""
        self._outputs[self._require(name, self._output_names)] = ortvalue

    def synchronize_outputs(self) -> None:
        """Accepted: a run returns when its outputs are there."""

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results = []

    # Results

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order they were bound, where they are."""
        return [OrtValue(result) for result in self._results]

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The same as arrays of numpy."""
        return [np.array(value) if isinstance(value := on_host(r), np.ndarray) else value for r in self._results]

    # Inside

    def _require(self, name: str, names: set[str]) -> str:
        if name not in names:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        return name

    def _feeds(self) -> Mapping[str, Any]:
        return {name: value_of(value) for name, value in self._inputs.items()}

    def _run(self, model: SessionModel) -> None:
        """Raises InputError for what does not fit, RuntimeError without outputs."""
        if not self._outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        bound = {name: value_of(value) for name, value in self._outputs.items()}
        targets = {name: value for name, value in bound.items() if not isinstance(value, str)}
        for name, value in targets.items():
            if not hasattr(value, "shape"):
                raise InputError(f"{name}: an output is written over tensors alone")
        results = model.run_on_device(list(bound), self._feeds(), targets)
        self._results = [
            on_host(r) if isinstance(where, str) and where == "cpu" else r
            for where, r in zip(bound.values(), results, strict=True)
        ]
