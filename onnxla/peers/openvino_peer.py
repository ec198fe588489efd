"""OpenVINO on the CPU, which reads ONNX files itself."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxla.errors import InputError
from onnxla.runtime.tensors import Array

_SETTINGS = {
    "PERFORMANCE_HINT": "LATENCY",
    "NUM_STREAMS": 1,
    "ENABLE_HYPER_THREADING": True,
    "EXECUTION_MODE_HINT": "ACCURACY",
}
"""One run at a time, as fast as it goes; any CPU may have one of its threads; and the arithmetic that the model states,
where its default rounds f32 to bfloat16 on CPUs that multiply it."""
_TYPES = {"boolean", "f16", "f32", "f64", *(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64))}
"""Its element types that numpy has as well. Others come out under a wrong type, and strings end the process."""


class OpenVinoPeer:
    """One compiled model of OpenVINO's."""

    name = "openvino"

    def __init__(self, model: Path, threads: int, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """`shapes` of the inputs, for which a model with open sizes is made. Raises InputError where it refuses."""
        import openvino

        self.version: str = openvino.__version__.partition("-")[0]
        core = openvino.Core()
        try:
            read = core.read_model(str(model))
            if read.is_dynamic():
                read.reshape({name: openvino.PartialShape(list(shape)) for name, shape in shapes.items()})
            self._compiled = core.compile_model(read, "CPU", {**_SETTINGS, "INFERENCE_NUM_THREADS": threads})
        except Exception as error:  # it has no common base
            raise InputError(f"openvino {self.version} cannot load the model: {error}") from error
        for port in (*self._compiled.inputs, *self._compiled.outputs):
            kind = port.get_element_type().get_type_name()
            if kind not in _TYPES:
                raise InputError(f"openvino {self.version}: {port.get_any_name()} is {kind}, which numpy does not have")

    def run(self, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Any]:
        """The outputs by name, copied: the next run writes over OpenVINO's own."""
        try:
            found = self._compiled(dict(feeds))
        except Exception as error:  # it has no common base
            raise InputError(f"openvino {self.version} cannot run the model: {error}") from error
        places = {name: k for k, port in enumerate(self._compiled.outputs) for name in port.get_names()}
        return {name: found[places[name]].copy() for name in names if name in places}

    def runner(self, feeds: Mapping[str, Array]) -> Callable[[], object]:
        """A run by a call of the compiled model: inputs are read where they lie, outputs stay in its own memory."""
        given = dict(feeds)
        return lambda: self._compiled(given)
