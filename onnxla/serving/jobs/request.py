"""How a model is to be compiled, as JSON: what clients send, what a child is given, what a result is kept under.

    {"target": "cpu", "dims": {"batch": [1, 8]}, "shapes": {"x": [1, 3, 224, 224]}, "options": {"fast_math": true}}

Every field may be left out. A constant is its element type (HLO's name, or `string`), its shape and its bytes in
base64: `{"k": {"element": "s64", "shape": [1], "data": "BQAAAAAAAAA="}}`.
"""

import base64
import binascii
import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from onnxla.config import CompileOptions, Limits
from onnxla.errors import ArtifactError, InputError, OnnxlaError
from onnxla.given import shapes_of, sizes_of, whole_number
from onnxla.runtime.manifest import constant_data
from onnxla.runtime.tensors import Array, dtype_of

OF_SERVERS = ("dump_to", "dump_weights", "cache_dir", "cache_bytes", "compile_timeout")
"""Knobs of the machine that compiles, which are not for clients."""
_NAME = re.compile(r"[\w][\w. +-]{0,127}")
_MOST_CONSTANT_ELEMENTS = 1 << 28


@dataclass(frozen=True)
class CompileRequest:
    """The arguments of `onnxla.compile` besides the model, checked as far as they can be without it."""

    target: str = "cpu"
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dims: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Each with its sizes; one size may be given without a list."""
    constants: Mapping[str, Array] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Knobs of `CompileOptions` by name; the others have the defaults of the machine that compiles."""
    num_threads: int | None = None
    signature: str | None = None
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    fallback: str | None = None

    def __post_init__(self) -> None:
        """Raises InputError."""
        put = object.__setattr__
        put(self, "shapes", {n: list(shape) for n, shape in shapes_of(self.shapes).items()})
        put(self, "dims", {n: list(sizes) for n, sizes in sizes_of(self.dims).items()})
        if self.num_threads is not None:
            put(self, "num_threads", whole_number(self.num_threads, "num_threads", 1))
        for name in ("target", "signature", "fallback"):
            value = getattr(self, name)
            if not isinstance(value, str) and (name == "target" or value is not None):
                raise InputError(f"{name}={value!r}: a text is needed")
        for name in ("inputs", "outputs"):
            value = getattr(self, name)
            if value is not None and not (
                isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value)
            ):
                raise InputError(f"{name}={value!r}: a list of names is needed")
        put(self, "constants", {name: np.asarray(value) for name, value in self.constants.items()})
        self.compile_options()

    def compile_options(self, **more: Any) -> CompileOptions:
        """The knobs with this machine's values for those that are not given. Raises InputError."""
        given = self.options
        if not isinstance(given, Mapping):
            raise InputError(f"options={given!r}: knobs by name are needed")
        known = [f.name for f in fields(CompileOptions) if f.name not in OF_SERVERS]
        odd = sorted(set(given) - set(known))
        if odd:
            own = [name for name in odd if name in OF_SERVERS]
            why = f"{own[0]} is the server's to choose" if own else f"no option {odd[0]}"
            raise InputError(f"{why}; the options are {', '.join(known)}")
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        return CompileOptions.from_environment(**{**values, **more})

    def arguments(self, **more: Any) -> dict[str, Any]:
        """Keyword arguments of `onnxla.compile`; `more` are further knobs."""
        return {
            "target": self.target,
            "shapes": self.shapes or None,
            "dims": self.dims or None,
            "constants": self.constants or None,
            "options": self.compile_options(**more),
            "num_threads": self.num_threads,
            "signature": self.signature,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "fallback": self.fallback,
        }

    def explain_arguments(self) -> dict[str, Any]:
        """Keyword arguments of `onnxla.frontends.explain.explain`: of several sizes, the first ones."""
        return {
            "shapes": self.shapes or None,
            "dims": {name: sizes[0] for name, sizes in self.dims.items()} or None,
            "constants": self.constants or None,
            "options": self.compile_options(),
            "limits": Limits.from_environment(),
            "signature": self.signature,
            "inputs": self.inputs,
            "outputs": self.outputs,
        }

    def key_parts(self) -> dict[str, str]:
        """Everything here that decides the artifact, by name."""
        document = self.to_json() | {"options": {**self.compile_options().code_options()}}
        document["options"]["pad_to_bucket"] = self.compile_options().pad_to_bucket
        document["options"]["tune_seconds"] = self.compile_options().tune_seconds
        return {name: json.dumps(value, sort_keys=True) for name, value in document.items()}

    def to_json(self) -> dict[str, Any]:
        """The inverse of `request_of_json`."""
        document = {f.name: getattr(self, f.name) for f in fields(self)}
        document["options"] = {n: list(v) if isinstance(v, tuple) else v for n, v in self.options.items()}
        document["constants"] = {name: _constant_json(value) for name, value in sorted(self.constants.items())}
        return document


def is_plain_name(name: str) -> bool:
    """Whether a model may be sent under this file name; under others, and with others, it goes in an archive."""
    return _NAME.fullmatch(name) is not None and name.isprintable()


def request_of_json(document: Any) -> CompileRequest:
    """Raises InputError for what is not a request, in whatever way."""
    if not isinstance(document, dict):
        raise InputError(f"the options of a compile are a JSON object, not {type(document).__name__}")
    known = [f.name for f in dataclasses.fields(CompileRequest)]
    odd = sorted(set(document) - set(known))
    if odd:
        raise InputError(f"no field {odd[0]!r} of a compile; the fields are {', '.join(known)}")
    rows = document.get("constants") or {}
    if not isinstance(rows, dict):
        raise InputError("constants are given by name")
    constants = {name: _constant(name, row) for name, row in rows.items()}
    try:
        return CompileRequest(**{**document, "constants": constants})
    except (TypeError, ValueError) as error:
        raise InputError(f"the options of a compile are malformed: {error}") from error


def _constant_json(value: Array) -> dict[str, Any]:
    element, data = constant_data(value)
    return {"element": element, "shape": list(value.shape), "data": base64.b64encode(data).decode()}


def _constant(name: str, row: Any) -> Array:
    try:
        element, shape = row["element"], [whole_number(n, "a size", 0) for n in row["shape"]]
        data = base64.b64decode(row["data"], validate=True)
        if len(shape) > 64 or not 0 <= int(np.prod(shape, dtype=object)) <= _MOST_CONSTANT_ELEMENTS:
            raise InputError(f"a shape of {len(shape)} dimensions is too large")
        if element == "string":
            words = json.loads(data)
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                raise InputError("the strings are no list of texts")
            return np.array(words, object).reshape(shape)
        return np.frombuffer(data, dtype_of(element)).reshape(shape)
    except (KeyError, TypeError, ValueError, binascii.Error, ArtifactError, RecursionError, OnnxlaError) as error:
        raise InputError(f"constant {name}: {error}; it is an element type, a shape, and its data in base64") from error
