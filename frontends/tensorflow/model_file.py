"""Read a model: a frozen GraphDef (`.pb`, `.pbtxt`) or a SavedModel's folder, with its variables left in the file."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from onnxla.errors import InputError, ModelFormatError
from onnxla.files import open_file, read_file
from onnxla.frontends.tensorflow.assets import Assets, assets_of
from onnxla.frontends.tensorflow.checkpoint import Checkpoint
from onnxla.frontends.tensorflow.choices import with_choices
from onnxla.frontends.tensorflow.graph import MOST_FAULTS, Body, body_of_function, body_of_graph
from onnxla.frontends.tensorflow.loops import with_functional_loops
from onnxla.frontends.tensorflow.messages import GraphDef, SavedModel
from onnxla.frontends.tensorflow.tables import Table, find_tables
from onnxla.frontends.tensorflow.variables import Variables, declared_variables, find_variables

_FILES = ("saved_model.pb", "saved_model.pbtxt")
_GRAPH_FIELDS = ("node", "library", "versions", "version")
_FIRST_TAG_OF_GRAPH = b"\x0a"
_SERVE = "serve"


@dataclass
class TensorFlowModel:
    """A parsed model. Importing it again for other shapes does not read it again."""

    name: str
    body: Body
    functions: Mapping[str, Body]
    signatures: Mapping[str, Any] = field(default_factory=dict)
    """SignatureDef by name; empty for a GraphDef."""
    variables: Variables = field(default_factory=lambda: Variables({}, None))
    version: str = ""
    """TensorFlow's version that wrote it, where the file says."""

    assets: Assets = field(default_factory=Assets)
    faults: tuple[str, ...] = ()
    """What nodes read that the graph or a function does not have. Such a model can be looked at, and not imported."""

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The hash tables whose contents are known, by name."""
        return find_tables(self.body, self.functions, self.assets)

    @property
    def node_count(self) -> int:
        return len(self.body.nodes) + sum(len(f.nodes) for f in self.functions.values())


def is_tensorflow(source: object) -> bool:
    """Whether `source` is a SavedModel's folder or file, a GraphDef's file, or a GraphDef."""
    if not isinstance(source, (str, os.PathLike)):
        return isinstance(source, TensorFlowModel) or _is_graph_message(source)
    path = Path(source)
    if os.path.isdir(path) or path.name in _FILES:
        return True
    try:
        with open_file(path) as file:
            head = file.read(4096)
    except OSError:
        return False
    if path.suffix == ".pb":
        return head[:1] == _FIRST_TAG_OF_GRAPH
    return path.suffix == ".pbtxt" and _first_field(head) in _GRAPH_FIELDS


def read_tensorflow(source: Any) -> TensorFlowModel:
    """The model in `source`. Raises ModelFormatError for what is not a GraphDef or a SavedModel."""
    if isinstance(source, TensorFlowModel):
        return source
    if _is_graph_message(source):
        return _model_of_graph("graph", _parsed(GraphDef, source.SerializeToString(), "the GraphDef"))
    path = Path(source)
    if path.name in _FILES:
        path = path.parent
    if os.path.isdir(path):
        return _read_saved_model(path)
    return _model_of_graph(path.stem, _read(GraphDef, path))


def require_signature(model: TensorFlowModel, name: str | None) -> str:
    """The name of the signature meant: the one given, `serving_default`, or the only one. Raises InputError."""
    public = [n for n in model.signatures if not n.startswith("__")]
    if name is None:
        if "serving_default" in public:
            return "serving_default"
        if len(public) == 1:
            return public[0]
        raise InputError(f"choose a signature of {model.name}: {', '.join(sorted(public)) or 'it has none'}")
    if name not in model.signatures:
        raise InputError(f"{model.name} has no signature {name!r}; it has {', '.join(sorted(public)) or 'none'}")
    return name


def _read_saved_model(folder: Path) -> TensorFlowModel:
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if file is None:
        raise ModelFormatError(f"{folder.name} is no SavedModel: it has no {' or '.join(_FILES)}")
    meta_graphs = _read(SavedModel, file).meta_graphs
    chosen = [m for m in meta_graphs if _SERVE in m.meta_info_def.tags] or list(meta_graphs)
    if not chosen:
        raise ModelFormatError(f"{folder.name} has no graph")
    meta_graph = chosen[0]
    model = _model_of_graph(folder.resolve().name, meta_graph.graph_def)
    model.signatures = dict(meta_graph.signature_def)
    model.assets = assets_of(folder, meta_graph)
    model.version = meta_graph.meta_info_def.tensorflow_version
    if (folder / "variables" / "variables.index").exists():
        checkpoint = Checkpoint(folder, "variables/variables")
        model.variables = find_variables(meta_graph, model.body, model.functions, checkpoint)
    return model


def _model_of_graph(name: str, graph: Any) -> TensorFlowModel:
    """Raises one ModelFormatError for all that is wrong with the structure of the graph and its functions."""
    bodies: dict[str, Body] = {}
    broken: list[str] = []
    for function in (None, *graph.library.function):
        key = "" if function is None else function.signature.name
        try:
            bodies[key] = body_of_graph(name, graph.node) if function is None else body_of_function(function)
        except ModelFormatError as error:
            broken.append(str(error))
    faults = tuple(fault for body in bodies.values() for fault in body.faults)
    if broken:
        raise ModelFormatError("\n  ".join([*broken, *faults[:MOST_FAULTS]]))
    try:
        body, functions = with_functional_loops(bodies.pop(""))
        functions |= bodies
        body, functions = with_choices(body), {key: with_choices(f) for key, f in functions.items()}
    except ModelFormatError as error:
        raise ModelFormatError("\n  ".join([*faults[:MOST_FAULTS], str(error)])) from error
    variables = Variables(declared_variables(body, functions), None)
    return TensorFlowModel(name, body, functions, variables=variables, faults=faults)


def _read(message: Any, path: Path) -> Any:
    try:
        data = read_file(path)
    except OSError as error:
        raise ModelFormatError(f"{path} cannot be read: {error}") from error
    if path.suffix != ".pbtxt":
        return _parsed(message, data, path.name)
    try:
        return text_format.Parse(data.decode(), message(), allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise ModelFormatError(f"{path.name} is no text of a {message.DESCRIPTOR.name}: {error}") from error


def _parsed(message: Any, data: bytes, what: str) -> Any:
    try:
        return message.FromString(data)
    except DecodeError as error:
        raise ModelFormatError(f"{what} cannot be read as a {message.DESCRIPTOR.name}: {error}") from error


def _is_graph_message(source: object) -> bool:
    return getattr(getattr(source, "DESCRIPTOR", None), "full_name", "") == "tensorflow.GraphDef"


def _first_field(head: bytes) -> str:
    """The name of the first field of a protobuf text."""
    text = re.sub(rb"#.*", b"", head)
    match = re.match(rb"\s*(\w+)", text)
    return match.group(1).decode() if match else ""
