"""ONNX's backend interface, so that any runner written for it can drive onnxla.

import onnxla.backend
rep = onnxla.backend.prepare(model)
(y,) = rep.run([x])
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TypeProto, helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from onnxla.api import compile
from onnxla.errors import DeviceError, InputError
from onnxla.frontends.onnx.model_file import NEWEST_OPSET, read_model
from onnxla.frontends.onnx.plain_interface import is_plain, plain_feeds, plain_model, structure
from onnxla.frontends.onnx.signature import signature_of
from onnxla.runtime.model import CompiledModel

_TARGETS = {DeviceType.CPU: "cpu", DeviceType.CUDA: "gpu"}


class StructuredRep(BackendRep):
    """A model with sequences, optionals or strings as inputs; compiled at a run, for their structure."""

    def __init__(self, model: ModelProto, options: Mapping[str, Any]) -> None:
        self._model = model
        self._options = options
        self._made: dict[Any, CompiledModel] = {}

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """As `CompiledRep.run`; a sequence is a list, an empty optional None, strings are arrays of `str` objects."""
        names = [spec.name for spec in signature_of(read_model(self._model)).inputs]
        feeds = feeds_of(names, inputs)
        key = tuple((name, structure(value)) for name, value in feeds.items())
        if key not in self._made:
            self._made[key] = compile(plain_model(self._model, feeds), **self._options)
        return tuple(self._made[key].run(None, plain_feeds(self._model, feeds)))


class CompiledRep(BackendRep):
    """A model made ready to run. Open shapes, and values that decide shapes, are compiled for at the run."""

    def __init__(self, model: CompiledModel) -> None:
        self.model = model

    def run(self, inputs: Sequence[Any] | Mapping[str, Any] | Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for inputs by position or name; one input may stand alone. Raises InputError."""
        names = [tensor.name for tensor in self.model.get_inputs()]
        return tuple(self.model.run(None, feeds_of(names, inputs)))


class OnnxlaBackend(Backend):
    """`onnx.backend.base.Backend` over `onnxla.compile`. Options of `compile` go through as keyword arguments."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """`CPU` always, `CUDA` where an NVIDIA GPU is there to run on."""
        return bool(Device(device).type == DeviceType.CPU) or has_gpu()

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Raises the errors of `onnxla.compile`."""
        options = {"target": _TARGETS[Device(device).type], **kwargs}
        return CompiledRep(compile(model, **options)) if is_plain(model) else StructuredRep(model, options)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Compile a model of this node alone and run it. `opset_version` chooses the opset of its domain."""
        opset = kwargs.pop("opset_version", NEWEST_OPSET if node.domain in ("", "ai.onnx") else 1)
        names = list(dict.fromkeys(name for name in node.input if name))
        feeds = {name: np.asarray(value) for name, value in feeds_of(names, inputs).items()}
        graph = helper.make_graph(
            [node],
            node.op_type,
            [
                helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                for n, a in feeds.items()
            ],
            [
                onnx.ValueInfoProto(name=name, type=TypeProto(tensor_type=TypeProto.Tensor()))
                for name in node.output
                if name
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.prepare(model, device, **kwargs).run(feeds)


def has_gpu() -> bool:
    """Whether compiled code for a GPU can run here."""
    from onnxla.runtime.cuda_device import CudaDevice

    try:
        CudaDevice()
    except DeviceError:
        return False
    return True


def feeds_of(names: Sequence[str], inputs: Sequence[Any] | Mapping[str, Any] | Any) -> dict[str, Any]:
    """Inputs by name, from a mapping, a sequence in the model's order, or the one input."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    values: Sequence[Any] = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    if len(values) > len(names):
        raise InputError(f"{len(values)} inputs given; the model takes {len(names)}: {', '.join(names)}")
    return dict(zip(names, values, strict=False))


is_compatible = OnnxlaBackend.is_compatible
prepare = OnnxlaBackend.prepare
run = OnnxlaBackend.run_model
run_model = OnnxlaBackend.run_model
run_node = OnnxlaBackend.run_node
supports_device = OnnxlaBackend.supports_device
