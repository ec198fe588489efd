"""The artifact: one file with all that a compiled model needs, mapped from disk and verified before it is used.

It is a zip file, so that any tool opens it. Entries are stored, not compressed, and start at multiples of 4096 bytes:

    code/<triple>/<k>.o       object code; code/<triple>/thread_pool.o is the thread pool
    weights/<k>.bin           packed weights, read in place; programs share pages (`shared_pages.py`)
    constants/<k>.bin         values of inputs that a program was made for
    state/<k>.bin             values of the variables that running changes
    onnx/<k>.onnx             parts of a model for onnxruntime; their weights are with the others
    texts/<program>/<stage>   HLO and the plan, read only when asked for
    manifest.json             signature, programs; offset, size and digest of every other section

The comment at the end of the file gives the manifest's place and digest, so reading needs no zip library and trusts no
zip header. The same model gives the same bytes; equal sections are stored once. Digests find damage, not malice:
loading an artifact runs its code, so load only files that you would run.
"""

import json
import mmap
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from onnxla.errors import ArtifactError, FileError, OnnxlaError
from onnxla.files import open_file, writing
from onnxla.runtime.digest import checksum_of, digest_of
from onnxla.runtime.mixed_parts import Codec, StoredPlan, plan_json, plan_of_json
from onnxla.runtime.padding import Padding
from onnxla.runtime.program import Program, Step
from onnxla.runtime.residency import let_go
from onnxla.runtime.results import Result, indices_of, result_json, result_of_json
from onnxla.runtime.shared_pages import MOST_EXTENTS, PAGE, map_image, share_pages
from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.runtime.tensors import Array, TensorSignature, dtype_of, element_of_dtype

if TYPE_CHECKING:
    from zipfile import ZipFile

FORMAT_VERSION = 5
_MANIFEST = "manifest.json"
_STRING = "string"
"""The element type of constants that are strings."""
_COMMENT = "onnxla artifact: manifest at {:020d} of {:020d} bytes, digest {}"
_COMMENT_FORM = re.compile(rb"onnxla artifact: manifest at (\d{20}) of (\d{20}) bytes, digest ([0-9a-f]{64})")
_COMMENT_SIZE = len(_COMMENT.format(0, 0, "0" * 64))
_MAX_MANIFEST = 256 << 20
_CHUNK = 4 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_PADDING_HEADER = 0xD935  # the extra field that Android's zipalign introduced for the same purpose
_ZIP64_EXTRA = 20
_LOCAL_HEADER = 30

Section: TypeAlias = bytes | memoryview
Json: TypeAlias = Any


@dataclass(frozen=True)
class Artifact:
    """The contents of an artifact."""

    signature: ModelSignature
    programs: tuple[Program, ...]
    about: Mapping[str, Json] = field(default_factory=dict)
    """Facts for people and the cache: onnxla's version, model digest, options."""
    state: Mapping[str, Array] = field(default_factory=dict)
    """The variables that the programs change, with their values."""
    mixed: tuple[StoredPlan, ...] = ()
    """How parts in onnxruntime and the programs are run; empty where each program is the whole model."""


def write_artifact(path: str | os.PathLike[str], artifact: Artifact) -> int:
    """Write atomically: the file appears whole or not at all. Returns its size. Raises FileError, an ArtifactError."""
    try:
        with writing(path) as file:
            _write_zip(file, artifact)
            size = file.tell()
    except OSError as error:
        raise FileError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error
    return size


def read_artifact(path: str | os.PathLike[str], *, verify_weights: str = "fast") -> Artifact:
    """Map the file, verify it, and return what it holds; weights stay in the file.

    Raises ArtifactError for a file that is damaged, foreign or of another format version; FileError, which is one, for
    a file that cannot be read.
    `verify_weights`: "fast" compares checksums, "full" SHA-256 digests, "off" does not read them at all.
    """
    name = os.fspath(path)
    try:
        with open_file(path) as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return _Reader(data, verify_weights, file.fileno()).artifact()
    except OSError as error:
        raise FileError(f"cannot read {name}: {error.strerror or error}") from error
    except OnnxlaError as error:
        raise ArtifactError(f"{name}: {error}") from error
    # hostile bytes make json and the checks below raise many kinds: KeyError, RecursionError, ...
    except Exception as error:
        raise ArtifactError(f"{name} is not an onnxla artifact: {type(error).__name__}: {error}") from error


# Writing


class _Sections:
    """Named sections; equal contents under equal prefixes share one."""

    def __init__(self) -> None:
        self.contents: dict[str, Section] = {}
        self.digests: dict[str, str] = {}
        self._known: dict[tuple[str, str], str] = {}

    def add(self, prefix: str, suffix: str, data: Section) -> str:
        digest = digest_of(data, let_go)
        if (prefix, digest) not in self._known:
            count = sum(1 for known, _ in self._known if known == prefix)
            self._put(f"{prefix}/{count}{suffix}", data, digest)
            self._known[prefix, digest] = f"{prefix}/{count}{suffix}"
        return self._known[prefix, digest]

    def add_named(self, name: str, data: Section) -> str:
        self._put(name, data, digest_of(data))
        return name

    def _put(self, name: str, data: Section, digest: str) -> None:
        self.contents[name] = data
        self.digests[name] = digest


def _write_zip(file: IO[bytes], artifact: Artifact) -> None:
    from zipfile import ZIP_STORED, ZipFile

    sections = _Sections()
    shared = share_pages([p.weights for p in artifact.programs])
    names = [sections.add("weights", ".bin", content) for content in shared.sections]
    weights = [[[names[e.section], e.offset, e.size] for e in extents] for extents in shared.images]
    pairs = enumerate(zip(artifact.programs, weights, strict=True))
    programs = [_program_json(program, k, places, sections) for k, (program, places) in pairs]
    state = _arrays_json(artifact.state, "state", sections)
    codec = Codec(
        arrays=lambda arrays: _arrays_json(arrays, "constants", sections),
        weights=lambda arrays: _weights_json(arrays, sections),
        section=lambda data: sections.add("onnx", ".onnx", data),
        signature=signature_json,
    )
    mixed = [plan_json(plan, codec) for plan in artifact.mixed]
    with ZipFile(file, "w", ZIP_STORED) as archive:
        table = {}
        for name, data in sections.contents.items():
            offset = _add_entry(archive, file, name, data)
            table[name] = {"offset": offset, "size": len(data), "digest": sections.digests[name]}
            if name.startswith("weights/"):
                table[name]["checksum"] = checksum_of(data, let_go)
        manifest = {
            "format": "onnxla",
            "format_version": FORMAT_VERSION,
            "about": dict(artifact.about),
            "signature": signature_json(artifact.signature),
            "programs": programs,
            "state": state,
            "sections": table,
            **({"mixed": mixed} if mixed else {}),
        }
        text = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
        offset = _add_entry(archive, file, _MANIFEST, text)
        archive.comment = _COMMENT.format(offset, len(text), digest_of(text)).encode()


def _add_entry(archive: "ZipFile", file: IO[bytes], name: str, data: Section) -> int:
    """Add an entry whose data start at a multiple of PAGE; returns where."""
    from zipfile import ZipInfo

    info = ZipInfo(name, _EPOCH)
    info.create_system = 3
    info.external_attr = 0o644 << 16
    unpadded = file.tell() + _LOCAL_HEADER + len(name.encode()) + _ZIP64_EXTRA + 4
    padding = -unpadded % PAGE
    info.extra = struct.pack("<HH", _PADDING_HEADER, padding) + bytes(padding)
    with archive.open(info, "w", force_zip64=True) as entry:
        for start in range(0, len(data), _CHUNK):
            chunk = memoryview(data)[start : start + _CHUNK]
            entry.write(chunk)
            let_go(chunk)
    return unpadded + padding


def signature_json(signature: ModelSignature) -> Json:
    return {
        "inputs": [[t.name, t.type, t.shape] for t in signature.inputs],
        "outputs": [[t.name, t.type, t.shape] for t in signature.outputs],
        "defaults": list(signature.defaults),
    }


def _weights_json(arrays: Mapping[str, Array], sections: _Sections) -> Json:
    """Arrays as sections that are read in place; the arrays themselves are not copied."""
    rows = []
    for name, value in sorted(arrays.items()):
        flat = np.require(value, requirements=["C", "A"]).reshape(-1).view(np.uint8)
        section = sections.add("weights", ".bin", flat.data)
        rows.append([name, element_of_dtype(value.dtype), list(value.shape), section])
    return rows


def _arrays_json(arrays: Mapping[str, Array], prefix: str, sections: _Sections) -> Json:
    return [
        [name, element, list(value.shape), sections.add(prefix, ".bin", data)]
        for name, value in sorted(arrays.items())
        for element, data in [constant_data(value)]
    ]


def _program_json(program: Program, index: int, weights: Json, sections: _Sections) -> Json:
    code = f"code/{program.triple}"
    return {
        "inputs": [[t.name, t.element, list(t.shape)] for t in program.inputs],
        "outputs": [[t.name, t.element, list(t.shape)] for t in program.outputs],
        "results": [result_json(r) for r in program.results],
        "vocabularies": [[name, list(words)] for name, words in sorted(program.vocabularies.items())],
        "objects": [sections.add(code, ".o", o) for o in program.objects],
        "thread_pool": sections.add_named(f"{code}/thread_pool.o", program.thread_pool),
        "weights": weights,
        "constants": _arrays_json(program.constants, "constants", sections),
        "state": [[t.name, t.element, list(t.shape)] for t in program.state],
        "texts": {
            stage: sections.add_named(f"texts/{index}/{stage}", text.encode())
            for stage, text in sorted(program.texts.items())
        },
        "padding": None if program.padding is None else program.padding.to_json(),
        "arena_bytes": program.arena_bytes,
        "intermediate_bytes": program.intermediate_bytes,
        "instruction_count": program.instruction_count,
        "kernel_count": program.kernel_count,
        "steps": [
            [
                s.name,
                s.op,
                s.source,
                s.bytes,
                s.flops,
                s.depth,
                s.kernel,
                s.tasks,
                s.effort,
                s.weight_bytes,
                list(s.also),
            ]
            for s in program.steps
        ],
        "triple": program.triple,
        "cpu": program.cpu,
        "features": list(program.features),
    }


# Reading


class _Texts(Mapping[str, str]):
    """Texts of the stages, verified and decoded when somebody reads them."""

    def __init__(self, reader: "_Reader", names: Mapping[str, str]) -> None:
        self._reader = reader
        self._names = names

    def __getitem__(self, stage: str) -> str:
        try:
            return self._reader.section(self._names[stage]).decode()
        except UnicodeDecodeError as error:
            raise ArtifactError(f"the text of stage {stage} is no text: {error}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Reader:
    """Checks as it reads: every field has its type, every section its digest."""

    def __init__(self, data: memoryview, verify_weights: str, descriptor: int) -> None:
        self._data = data
        self._verify_weights = verify_weights
        self._descriptor = descriptor
        self._verified: set[str] = set()
        self._manifest = self._read_manifest()
        self._sections = _typed(self._manifest["sections"], dict)

    def artifact(self) -> Artifact:
        interface = signature_of_json(self._manifest["signature"])
        programs = tuple(self._program(p) for p in _typed(self._manifest["programs"], list))
        stored = _typed(self._manifest.get("mixed", []), list)
        if not programs and not stored:
            raise ArtifactError("holds no code")
        state = self._arrays(self._manifest["state"])
        codec = Codec(
            arrays=self._arrays, weights=self._large_arrays, section=self.section, signature=signature_of_json
        )
        mixed = tuple(plan_of_json(plan, programs, interface, codec) for plan in stored)
        return Artifact(interface, programs, _typed(self._manifest["about"], dict), state, mixed)

    def _large_arrays(self, rows: Json) -> dict[str, Array]:
        """Arrays in place, which nobody may write to."""
        found = {}
        for name, element, shape, section in _typed(rows, list):
            tensor = TensorSignature(_typed(name, str), _typed(element, str), _shape(shape))
            data = self.weights(section)
            if len(data) != tensor.bytes:
                raise ArtifactError(f"{len(data)} bytes are no {tensor}")
            found[tensor.name] = np.frombuffer(data, np.uint8).view(tensor.dtype).reshape(tensor.shape)
        return found

    def section(self, name: str) -> bytes:
        """The bytes of a section, copied before they are checked: the file may change, this copy not.

        Raises ArtifactError unless they are those that were written.
        """
        data = bytes(self._place(name))
        self._require_digest(name, data)
        return data

    def _require_digest(self, name: str, data: Section) -> None:
        if digest_of(data) != self._sections[name]["digest"]:
            raise ArtifactError(f"section {name} is damaged: its digest differs")

    def weights(self, name: str) -> memoryview:
        """As `section`, in place, and checked as far as the caller wants."""
        data = self._place(name)
        if name in self._verified:
            return data
        self._verified.add(name)
        if self._verify_weights == "full":
            self._require_digest(name, data)
        elif self._verify_weights != "off" and checksum_of(data) != self._sections[name]["checksum"]:
            raise ArtifactError(f"section {name} is damaged: its checksum differs")
        return data

    def _image(self, rows: Json) -> Array:
        """The weights of a program, in place: extents of sections, one behind the other."""
        if not 0 < len(rows) <= MOST_EXTENTS:
            raise ArtifactError(f"the manifest is malformed: weights in {len(rows)} parts")
        parts: list[tuple[int, memoryview]] = []
        for name, offset, size in rows:
            section, start, length = self.weights(_typed(name, str)), _count(offset), _count(size)
            if start % PAGE or start + length > len(section):
                raise ArtifactError(f"{length} bytes of weights at {start} do not fit section {name}")
            parts.append((_count(self._sections[name]["offset"]) + start, section[start : start + length]))
        if len(parts) == 1:
            return np.asarray(parts[0][1])
        if any(len(data) % PAGE or not len(data) for _, data in parts[:-1]) or not parts[-1][1]:
            raise ArtifactError("the manifest is malformed: weights in parts that are no pages")
        return map_image(self._descriptor, [(place, len(data)) for place, data in parts])

    def name_of(self, value: Json) -> str:
        """The name of a section whose bytes are in the file, and have a digest."""
        name: str = _typed(value, str)
        self._place(name)
        _typed(self._sections[name]["digest"], str)
        return name

    def _place(self, name: str) -> memoryview:
        row = _typed(self._sections[_typed(name, str)], dict)
        return self._range(_count(row["offset"]), _count(row["size"]))

    def _range(self, offset: int, size: int) -> memoryview:
        if offset % PAGE or offset + size > len(self._data):
            raise ArtifactError(f"a section of {size} bytes at {offset} does not fit the file")
        return self._data[offset : offset + size]

    def _read_manifest(self) -> dict[str, Json]:
        found = _COMMENT_FORM.fullmatch(self._data[-_COMMENT_SIZE:])
        if found is None:
            raise ArtifactError("is not an onnxla artifact, or not all of one")
        if int(found[2]) > _MAX_MANIFEST:
            raise ArtifactError(f"the manifest has {int(found[2])} bytes, more than {_MAX_MANIFEST}")
        text = bytes(self._range(int(found[1]), int(found[2])))
        if digest_of(text) != found[3].decode():
            raise ArtifactError("the manifest is damaged: its digest differs")
        manifest: dict[str, Json] = _typed(json.loads(text), dict)
        version = manifest.get("format_version")
        if version != FORMAT_VERSION:
            raise ArtifactError(
                f"has format version {version}, this onnxla reads version {FORMAT_VERSION}; compile the model again"
            )
        return manifest

    def _program(self, stored: Json) -> Program:
        outputs = _tensor_signatures(stored["outputs"])
        return Program(
            inputs=_tensor_signatures(stored["inputs"]),
            outputs=outputs,
            results=_results(stored["results"], outputs),
            vocabularies=_vocabularies(stored["vocabularies"]),
            objects=tuple(self.section(name) for name in _typed(stored["objects"], list)),
            thread_pool=self.section(stored["thread_pool"]),
            weights=self._image(_typed(stored["weights"], list)),
            constants=self._arrays(stored["constants"]),
            state=_tensor_signatures(stored["state"]),
            texts=_Texts(self, {stage: self.name_of(n) for stage, n in _typed(stored["texts"], dict).items()}),
            padding=None if stored["padding"] is None else Padding.from_json(stored["padding"]),
            arena_bytes=_count(stored["arena_bytes"]),
            intermediate_bytes=_count(stored["intermediate_bytes"]),
            instruction_count=_count(stored["instruction_count"]),
            kernel_count=_count(stored["kernel_count"]),
            steps=tuple(map(_step, _typed(stored["steps"], list))),
            triple=_typed(stored["triple"], str),
            cpu=_typed(stored["cpu"], str),
            features=tuple(_typed(f, str) for f in _typed(stored["features"], list)),
        )

    def _arrays(self, rows: Json) -> dict[str, Array]:
        return {_typed(row[0], str): self._constant(row) for row in _typed(rows, list)}

    def _constant(self, row: Json) -> Array:
        name, element, shape, section = row
        if element == _STRING:
            strings = [_typed(s, str) for s in _typed(json.loads(self.section(section)), list)]
            return np.array(strings, object).reshape(_shape(shape))
        signature = TensorSignature(name, element, _shape(shape))
        return np.frombuffer(self.section(section), np.uint8).view(dtype_of(element)).reshape(signature.shape)


def constant_data(value: Array) -> tuple[str, bytes]:
    """The element type of a constant, and its bytes in an artifact: of strings a list in JSON."""
    if value.dtype.kind in "OSU":
        return _STRING, json.dumps(value.astype(str).reshape(-1).tolist()).encode()
    return element_of_dtype(value.dtype), value.tobytes()


def _typed(value: Json, kind: type) -> Any:
    if type(value) is not kind:
        raise ArtifactError(f"the manifest is malformed: {str(value)[:60]!r} is not of type {kind.__name__}")
    return value


def _count(value: Json) -> int:
    number: int = _typed(value, int)
    if not 0 <= number < 1 << 63:
        raise ArtifactError(f"the manifest is malformed: {number} is not a size")
    return number


def _step(row: Json) -> Step:
    name, op, source, size, flops, depth, kernel, tasks, effort, weight_bytes, also = row
    return Step(
        _typed(name, str),
        _typed(op, str),
        _typed(source, str),
        _count(size),
        _count(flops),
        _count(depth),
        _typed(kernel, str),
        _count(tasks),
        _count(effort),
        _count(weight_bytes),
        tuple(_typed(name, str) for name in _typed(also, list)),
    )


def _shape(value: Json) -> tuple[int, ...]:
    return tuple(_count(n) for n in _typed(value, list))


def _tensor_signatures(rows: Json) -> tuple[TensorSignature, ...]:
    return tuple(TensorSignature(_typed(n, str), _typed(e, str), _shape(s)) for n, e, s in _typed(rows, list))


def signature_of_json(stored: Json) -> ModelSignature:
    rows = _typed(stored, dict)
    return ModelSignature(
        _model_tensors(rows["inputs"]),
        _model_tensors(rows["outputs"]),
        tuple(_typed(name, str) for name in _typed(rows["defaults"], list)),
    )


def _results(rows: Json, outputs: Sequence[TensorSignature]) -> tuple[Result, ...]:
    results = tuple(map(result_of_json, _typed(rows, list)))
    if results and [i for r in results for i in indices_of(r)] != list(range(len(outputs))):
        raise ArtifactError("the manifest is malformed: its results are not made of its outputs")
    return results


def _vocabularies(rows: Json) -> dict[str, tuple[str, ...]]:
    pairs = ((_typed(name, str), _typed(words, list)) for name, words in _typed(rows, list))
    return {name: tuple(_typed(word, str) for word in words) for name, words in pairs}


def _model_tensors(rows: Json) -> tuple[ModelTensor, ...]:
    tensors = []
    for name, kind, shape in _typed(rows, list):
        sizes: Sequence[Json] | None = None if shape is None else _typed(shape, list)
        if sizes is not None and not all(n is None or type(n) in (int, str) for n in sizes):
            raise ArtifactError(f"the manifest is malformed: shape {sizes}")
        tensors.append(ModelTensor(_typed(name, str), _typed(kind, str), None if sizes is None else list(sizes)))
    return tuple(tensors)
