"""The artifact: one zip file with all that a compiled model needs, mapped from disk and verified before it is used.

    manifest.json             signature, programs, and the digest of every other section
    code/<triple>/<k>.o       object code; code/<triple>/thread_pool.o is the thread pool
    weights/<k>.bin           packed weights, read in place
    constants/<k>.bin         values of inputs that a program was made for
    texts/<program>/<stage>   HLO and the plan, read only when asked for

Entries are stored, not compressed, and start at multiples of 4096 bytes. The same model gives the same bytes. Equal
sections are stored once. The digest of the manifest stands in the comment of the zip file, so a changed byte anywhere
that matters is noticed. Digests find damage, not malice: loading an artifact runs its code, so load only files that
you would run.
"""

import json
import mmap
import os
import secrets
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from onnxla.errors import ArtifactError, OnnxlaError
from onnxla.runtime.digest import digest_of
from onnxla.runtime.program import Array, Program, Step, TensorSignature, dtype_of, element_of_dtype
from onnxla.runtime.signature import ModelSignature, ModelTensor

FORMAT_VERSION = 1
PAGE = 4096
_MANIFEST = "manifest.json"
_COMMENT = b"onnxla artifact, manifest sha256 tree "
_MAX_MANIFEST = 256 << 20
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


def write_artifact(path: str | os.PathLike[str], artifact: Artifact) -> int:
    """Write atomically: the file appears whole or not at all. Returns its size. Raises ArtifactError."""
    target = Path(path)
    try:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        try:
            with open(temporary, "x+b") as file:
                _write_zip(file, artifact)
                size = file.tell()
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ArtifactError(f"cannot write {target}: {error.strerror or error}") from error
    return size


def read_artifact(path: str | os.PathLike[str], *, verify_weights: bool = True) -> Artifact:
    """Map the file, verify it, and return what it holds; weights stay in the file.

    Raises ArtifactError for a file that is missing, damaged, foreign or of another format version.
    `verify_weights=False` leaves the digests of the weights unchecked, which saves reading them.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            file.seek(0)
            return _Reader(name, data, _entries(file, data), verify_weights).artifact()
    except OSError as error:
        raise ArtifactError(f"cannot read {name}: {error.strerror or error}") from error
    except OnnxlaError as error:
        raise ArtifactError(f"{name}: {error}") from error
    # zipfile and json raise their own kinds for hostile bytes: struct.error, KeyError, RecursionError, ...
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
        digest = digest_of(data)
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
    sections = _Sections()
    programs = [_program_json(p, k, sections) for k, p in enumerate(artifact.programs)]
    manifest = {
        "format": "onnxla",
        "format_version": FORMAT_VERSION,
        "about": dict(artifact.about),
        "signature": {
            "inputs": [[t.name, t.type, t.shape] for t in artifact.signature.inputs],
            "outputs": [[t.name, t.type, t.shape] for t in artifact.signature.outputs],
        },
        "programs": programs,
        "sections": {n: {"size": len(d), "digest": sections.digests[n]} for n, d in sections.contents.items()},
    }
    text = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add_entry(archive, file, _MANIFEST, text)
        for name, data in sections.contents.items():
            _add_entry(archive, file, name, data)
        archive.comment = _COMMENT + digest_of(text).encode()


def _add_entry(archive: zipfile.ZipFile, file: IO[bytes], name: str, data: Section) -> None:
    """Add an entry whose data start at a multiple of PAGE."""
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = 3
    info.external_attr = 0o644 << 16
    header = _LOCAL_HEADER + len(name.encode()) + _ZIP64_EXTRA
    padding = -(file.tell() + header + 4) % PAGE
    info.extra = struct.pack("<HH", _PADDING_HEADER, padding) + bytes(padding)
    with archive.open(info, "w", force_zip64=True) as entry:
        entry.write(data)


def _program_json(program: Program, index: int, sections: _Sections) -> Json:
    code = f"code/{program.triple}"
    return {
        "inputs": [[t.name, t.element, list(t.shape)] for t in program.inputs],
        "outputs": [[t.name, t.element, list(t.shape)] for t in program.outputs],
        "objects": [sections.add(code, ".o", o) for o in program.objects],
        "thread_pool": sections.add_named(f"{code}/thread_pool.o", program.thread_pool),
        "weights": sections.add("weights", ".bin", program.weights.data),
        "constants": [
            [name, element_of_dtype(value.dtype), list(value.shape), sections.add("constants", ".bin", value.tobytes())]
            for name, value in sorted(program.constants.items())
        ],
        "texts": {
            stage: sections.add_named(f"texts/{index}/{stage}", text.encode()) for stage, text in program.texts.items()
        },
        "arena_bytes": program.arena_bytes,
        "intermediate_bytes": program.intermediate_bytes,
        "kernel_count": program.kernel_count,
        "steps": [[s.name, s.op, s.source, s.bytes, s.flops] for s in program.steps],
        "triple": program.triple,
        "cpu": program.cpu,
        "features": list(program.features),
    }


# Reading


def _entries(file: IO[bytes], data: memoryview) -> dict[str, memoryview]:
    """The entries of the zip file as views of the map, plus its comment under the name ''."""
    with zipfile.ZipFile(file) as archive:
        entries = {"": memoryview(archive.comment)}
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise ArtifactError(f"entry {info.filename} is compressed")
            name_length, extra_length = struct.unpack_from("<HH", data, info.header_offset + 26)
            start = info.header_offset + _LOCAL_HEADER + name_length + extra_length
            if not 0 <= start <= start + info.file_size <= len(data) or start % PAGE:
                raise ArtifactError(f"entry {info.filename} lies outside the file or is not aligned")
            entries[info.filename] = data[start : start + info.file_size]
        return entries


class _Texts(Mapping[str, str]):
    """Texts of the stages, verified and decoded when somebody reads them."""

    def __init__(self, reader: "_Reader", names: Mapping[str, str]) -> None:
        self._reader = reader
        self._names = names

    def __getitem__(self, stage: str) -> str:
        return bytes(self._reader.section(self._names[stage])).decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _Reader:
    """Checks as it reads: every field has its type, every section its digest."""

    def __init__(self, name: str, data: memoryview, entries: Mapping[str, memoryview], verify_weights: bool) -> None:
        self._name = name
        self._data = data
        self._entries = entries
        self._verify_weights = verify_weights
        self._verified: set[str] = set()
        self._manifest = self._read_manifest()
        self._sections = _typed(self._manifest["sections"], dict)

    def artifact(self) -> Artifact:
        signature = _typed(self._manifest["signature"], dict)
        programs = tuple(self._program(p) for p in _typed(self._manifest["programs"], list))
        if not programs:
            raise ArtifactError("holds no code")
        return Artifact(
            ModelSignature(_model_tensors(signature["inputs"]), _model_tensors(signature["outputs"])),
            programs,
            _typed(self._manifest["about"], dict),
        )

    def section(self, name: str, *, verify: bool = True) -> memoryview:
        """The bytes of a section. Raises ArtifactError unless they are those that were written."""
        expected = _typed(self._sections[name], dict)
        data = self._entries[name]
        if len(data) != expected["size"]:
            raise ArtifactError(f"section {name} has {len(data)} bytes instead of {expected['size']}")
        if verify and name not in self._verified:
            if digest_of(data) != expected["digest"]:
                raise ArtifactError(f"section {name} is damaged: its digest differs")
            self._verified.add(name)
        return data

    def _read_manifest(self) -> dict[str, Json]:
        comment, text = bytes(self._entries[""]), self._entries.get(_MANIFEST)
        if text is None or not comment.startswith(_COMMENT):
            raise ArtifactError("is a zip file, but not an onnxla artifact")
        if len(text) > _MAX_MANIFEST:
            raise ArtifactError(f"the manifest has {len(text)} bytes, more than {_MAX_MANIFEST}")
        if comment != _COMMENT + digest_of(text).encode():
            raise ArtifactError("the manifest is damaged: its digest differs")
        manifest: dict[str, Json] = _typed(json.loads(bytes(text)), dict)
        version = manifest.get("format_version")
        if version != FORMAT_VERSION:
            raise ArtifactError(
                f"has format version {version}, this onnxla reads version {FORMAT_VERSION}; compile the model again"
            )
        return manifest

    def _program(self, stored: Json) -> Program:
        weights = np.asarray(self.section(stored["weights"], verify=self._verify_weights))
        constants = {_typed(row[0], str): self._constant(row) for row in _typed(stored["constants"], list)}
        return Program(
            inputs=_tensor_signatures(stored["inputs"]),
            outputs=_tensor_signatures(stored["outputs"]),
            objects=tuple(bytes(self.section(name)) for name in _typed(stored["objects"], list)),
            thread_pool=bytes(self.section(stored["thread_pool"])),
            weights=weights,
            constants=constants,
            texts=_Texts(self, _typed(stored["texts"], dict)),
            arena_bytes=_count(stored["arena_bytes"]),
            intermediate_bytes=_count(stored["intermediate_bytes"]),
            kernel_count=_count(stored["kernel_count"]),
            steps=tuple(
                Step(_typed(name, str), _typed(op, str), _typed(source, str), _count(size), _count(flops))
                for name, op, source, size, flops in _typed(stored["steps"], list)
            ),
            triple=_typed(stored["triple"], str),
            cpu=_typed(stored["cpu"], str),
            features=tuple(_typed(f, str) for f in _typed(stored["features"], list)),
        )

    def _constant(self, row: Json) -> Array:
        name, element, shape, section = row
        signature = TensorSignature(name, element, _shape(shape))
        return np.asarray(self.section(section)).view(dtype_of(element)).reshape(signature.shape)


def _typed(value: Json, kind: type) -> Any:
    if type(value) is not kind:
        raise ArtifactError(f"the manifest is malformed: {str(value)[:60]!r} is not of type {kind.__name__}")
    return value


def _count(value: Json) -> int:
    number: int = _typed(value, int)
    if not 0 <= number < 1 << 63:
        raise ArtifactError(f"the manifest is malformed: {number} is not a size")
    return number


def _shape(value: Json) -> tuple[int, ...]:
    return tuple(_count(n) for n in _typed(value, list))


def _tensor_signatures(rows: Json) -> tuple[TensorSignature, ...]:
    return tuple(TensorSignature(_typed(n, str), _typed(e, str), _shape(s)) for n, e, s in _typed(rows, list))


def _model_tensors(rows: Json) -> tuple[ModelTensor, ...]:
    tensors = []
    for name, kind, shape in _typed(rows, list):
        sizes: Sequence[Json] | None = None if shape is None else _typed(shape, list)
        if sizes is not None and not all(n is None or type(n) in (int, str) for n in sizes):
            raise ArtifactError(f"the manifest is malformed: shape {sizes}")
        tensors.append(ModelTensor(_typed(name, str), _typed(kind, str), None if sizes is None else list(sizes)))
    return tuple(tensors)
