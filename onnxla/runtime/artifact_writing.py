"""Writing an artifact (`artifact.py` has the format)."""

import json
import os
import struct
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

import numpy as np

from onnxla.errors import FileError
from onnxla.files import writing
from onnxla.runtime.artifact import COMMENT, FORMAT_VERSION, MANIFEST, Artifact, Section
from onnxla.runtime.digest import checksum_of, digest_of
from onnxla.runtime.manifest import Json, constant_data, signature_json, step_json, tensors_json
from onnxla.runtime.mixed_parts import Codec, plan_json
from onnxla.runtime.program import Program
from onnxla.runtime.residency import let_go
from onnxla.runtime.results import result_json
from onnxla.runtime.shared_pages import PAGE, share_pages
from onnxla.runtime.tensors import Array, element_of_dtype

if TYPE_CHECKING:
    from zipfile import ZipFile


_CHUNK = 4 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_PADDING_HEADER = 0xD935  # the extra field that Android's zipalign introduced for the same purpose
_ZIP64_EXTRA = 20
_LOCAL_HEADER = 30


def write_artifact(path: str | os.PathLike[str], artifact: Artifact) -> int:
    """Write atomically: the file appears whole or not at all. Returns its size. Raises FileError, an ArtifactError."""
    try:
        with writing(path) as file:
            _write_zip(file, artifact)
            size = file.tell()
    except OSError as error:
        raise FileError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error
    return size


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
        offset = _add_entry(archive, file, MANIFEST, text)
        archive.comment = COMMENT.format(offset, len(text), digest_of(text)).encode()


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
        "inputs": tensors_json(program.inputs),
        "outputs": tensors_json(program.outputs),
        "results": [result_json(r) for r in program.results],
        "vocabularies": [[name, list(words)] for name, words in sorted(program.vocabularies.items())],
        "objects": [sections.add(code, ".o", o) for o in program.objects],
        "thread_pool": sections.add_named(f"{code}/thread_pool.o", program.thread_pool),
        "weights": weights,
        "constants": _arrays_json(program.constants, "constants", sections),
        "state": tensors_json(program.state),
        "texts": {
            stage: sections.add_named(f"texts/{index}/{stage}", text.encode())
            for stage, text in sorted(program.texts.items())
        },
        "padding": None if program.padding is None else program.padding.to_json(),
        "arena_bytes": program.arena_bytes,
        "intermediate_bytes": program.intermediate_bytes,
        "instruction_count": program.instruction_count,
        "kernel_count": program.kernel_count,
        "steps": [step_json(step) for step in program.steps],
        "triple": program.triple,
        "cpu": program.cpu,
        "features": list(program.features),
    }
