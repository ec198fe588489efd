"""The model of a session: read once, changed as its options ask, compiled for what runs bring.

Most runs go to one `CompiledModel`. Where a run replaces initializers, or an input is a sequence or an optional, the
code is made for that: a model for each set of replaced initializers and each structure, those used last kept.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

from onnxla.api import compile
from onnxla.compat.device_memory import on_host
from onnxla.compat.errors import Fail, InvalidArgument, compat_error, unreadable
from onnxla.compat.misfits import misfit
from onnxla.compat.node_arg import ModelMetadata, NodeArg, metadata_of, node_arg, output_args
from onnxla.compat.options import EXTERNAL_FOLDER, FALLBACK, SessionOptions
from onnxla.compat.providers import Placement
from onnxla.config import RuntimeSettings
from onnxla.errors import FileError, InputError, ModelFormatError, raise_problems
from onnxla.frontends.onnx.model_file import OnnxModel, read_model
from onnxla.frontends.onnx.plain_interface import plain_feeds, plain_model, structure
from onnxla.frontends.onnx.unknown_operators import unknown_operators
from onnxla.runtime.loading import load_compiled
from onnxla.runtime.model import CompiledModel

ARTIFACT = ".onnxla"


class SessionModel:
    """What a session runs: its inputs and outputs as onnxruntime prints them, and the code."""

    def __init__(self, source: str | bytes, options: SessionOptions, place: Placement) -> None:
        """Raises NoSuchFile, InvalidProtobuf or InvalidArgument for what cannot be read, and what compiling raises."""
        self._options, self._place = options, place
        self.overridable: list[NodeArg] = []
        self._variants: dict[Any, CompiledModel] = {}
        self._making = threading.Lock()
        self._bound = RuntimeSettings.from_environment().specialisations
        if isinstance(source, str) and source.endswith(ARTIFACT):
            self._open_artifact(source)
            return
        model = _read(source, options._entries.get(EXTERNAL_FOLDER))
        _override_sizes(model.proto, options)
        _replace_initializers(model, options)
        graph = model.proto.graph
        initialized = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        required = [i for i in graph.input if i.name not in initialized]
        self.inputs = [node_arg(i) for i in required]
        self.outputs = output_args(model.proto)
        overridable = graph.input if model.proto.ir_version >= 4 else ()  # before, every initializer was an input
        self.overridable = [node_arg(i) for i in overridable if i.name in initialized]
        self.metadata = metadata_of(model.proto)
        self._model = model
        self._is_plain = all(i.type.HasField("tensor_type") for i in required)
        self._replaceable = {arg.name for arg in self.overridable}
        self._main = self._compile(model) if self._is_plain else None
        if (self._main is None or not self._main.programs) and FALLBACK not in options._entries:
            raise_problems(unknown_operators(model))  # now, not at the run that brings the sizes

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs named, all for None. Raises InputError for feeds that do not fit, and what compiling raises."""
        model, feeds = self._for(feeds)
        return model.run(names, feeds)

    def run_on_device(self, names: Sequence[str], feeds: Mapping[str, Any], out: Mapping[str, Any]) -> list[Any]:
        """As `run`, with outputs that are written to the arrays of `out`, and on a GPU others left there."""
        model, feeds = self._for(feeds)
        if self._place.gpu is None:
            return model.run(names, feeds, out=out or None)
        return model.run_async(names, feeds, out=out or None).wait()

    def profiled(self, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> Any:
        """As `run`, and the profile of that run."""
        model, feeds = self._for(feeds)
        return model.run_profiled(names, feeds)

    def release_memory(self) -> None:
        for model in (self._main, *self._variants.values()):
            if model is not None:
                model.release_memory()

    # Inside

    def _open_artifact(self, path: str) -> None:
        try:
            device = "cpu" if self._place.gpu is None else f"cuda:{self._place.gpu}"
            model = load_compiled(path, num_threads=self._options.intra_op_num_threads or None, device=device)
        except FileError as error:
            raise unreadable(path, error) from error
        self.inputs, self.outputs = (
            [NodeArg(t.name, t.type, list(t.shape or ()), t.shape is not None) for t in side]
            for side in (model.get_inputs(), model.get_outputs())
        )
        self.overridable = []
        self.metadata = ModelMetadata({}, "", "", "", str(model.about.get("model", "")), "onnxla", 0)
        self._is_plain, self._replaceable, self._main = True, set(), model

    def _compile(self, model: OnnxModel | ModelProto) -> CompiledModel:
        place = self._place
        return compile(
            model,
            target="cpu" if place.gpu is None else "gpu",
            device=None if place.gpu is None else f"cuda:{place.gpu}",
            num_threads=self._options.intra_op_num_threads or None,
            options=None if place.precision is None else {"precision": place.precision},
            fallback=self._options._entries.get(FALLBACK) or None,
            folder=None if self._model.folder is None else self._model.folder.path,
        )

    def _for(self, feeds: Mapping[str, Any]) -> tuple[CompiledModel, Mapping[str, Any]]:
        """The model for these feeds, and the feeds that it takes."""
        replaced = self._replaceable.intersection(feeds) if self._replaceable else frozenset()
        if self._main is not None and not replaced:
            return self._main, feeds
        known = {arg.name for arg in self.inputs} | self._replaceable
        missing = [arg.name for arg in self.inputs if arg.name not in feeds and not arg.type.startswith("optional")]
        if missing or not feeds.keys() <= known:
            raise InputError(f"the inputs are {', '.join(known)}; given are {', '.join(map(str, feeds))}")
        feeds = {arg.name: feeds.get(arg.name) for arg in self.inputs} | {n: feeds[n] for n in sorted(replaced)}
        if not self._is_plain:
            feeds = {name: on_host(value) for name, value in feeds.items()}
            wrong = [text for arg in self.inputs if (text := misfit(arg, feeds[arg.name]))]
            if wrong:
                raise InputError("\n".join(wrong))
        model = self._variant(frozenset(replaced), feeds)
        return model, feeds if self._is_plain else plain_feeds(self._whole(frozenset(replaced)), feeds)

    def _variant(self, replaced: frozenset[str], feeds: Mapping[str, Any]) -> CompiledModel:
        shape = () if self._is_plain else tuple((name, structure(value)) for name, value in feeds.items())
        key = (replaced, shape)
        with self._making:
            found = self._variants.pop(key, None)
            if found is None:
                whole = self._whole(replaced)
                found = self._compile(whole if self._is_plain else plain_model(whole, feeds))
            self._variants[key] = found  # used last
            while len(self._variants) > self._bound:
                del self._variants[next(iter(self._variants))]
        return found

    def _whole(self, replaced: frozenset[str]) -> ModelProto:
        """The model with all its weights in it, and with initializers that are inputs now."""
        whole = ModelProto()
        whole.CopyFrom(self._model.proto)
        for position, data in self._model.raw.items():
            whole.graph.initializer[position].raw_data = bytes(data)
        for kept, name_of in ((whole.graph.initializer, _name), (whole.graph.sparse_initializer, _name_of_sparse)):
            for position in reversed(range(len(kept))):
                if name_of(kept[position]) in replaced:
                    del kept[position]
        return whole


def _name(tensor: Any) -> str:
    return str(tensor.name)


def _name_of_sparse(tensor: Any) -> str:
    return str(tensor.values.name)


def _read(source: str | bytes, folder: str | None) -> OnnxModel:
    try:
        return read_model(source, folder=folder)
    except ModelFormatError as error:
        raise unreadable(source, error) from error


def _override_sizes(model: ModelProto, options: SessionOptions) -> None:
    """Give dimensions of the inputs the sizes that the options name. Raises Fail where the model has another."""
    problems = []
    for graph_input in model.graph.input:
        for d in graph_input.type.tensor_type.shape.dim:
            size = options._denotations.get(d.denotation) if d.denotation else None
            size = options._dims.get(d.dim_param, size) if d.dim_param else size
            if size is None:
                continue
            if d.HasField("dim_value") and d.dim_value != size:
                problems.append(
                    f"{graph_input.name}: the override {size} of {d.denotation} is {d.dim_value} in the model"
                )
            d.dim_value = size
    if problems:
        raise compat_error(Fail, "\n".join(problems))


def _replace_initializers(model: OnnxModel, options: SessionOptions) -> None:
    """Put the values of `add_initializer` in the model. Raises InvalidArgument for names and types that do not fit."""
    left = dict(options._initializers)
    problems = []
    for position, tensor in enumerate(model.proto.graph.initializer):
        value = left.pop(tensor.name, None)
        if value is None:
            continue
        new = numpy_helper.from_array(np.asarray(value.numpy()), tensor.name)
        if (new.data_type, list(new.dims)) != (tensor.data_type, list(tensor.dims)):
            problems.append(f"{tensor.name}: {value.data_type()} {value.shape()} for a tensor of {list(tensor.dims)}")
        tensor.CopyFrom(new)
        model.raw.pop(position, None)
    problems += [f"{name}: the model has no such initializer" for name in left]
    if problems:
        raise compat_error(InvalidArgument, "add_initializer\n" + "\n".join(problems))
