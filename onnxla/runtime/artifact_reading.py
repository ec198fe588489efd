"""Reading an artifact (`artifact.py` has the format): mapped from disk, and verified before it is used."""

import json
import mmap
import os
from collections.abc import Iterator, Mapping

import numpy as np

from onnxla.errors import ArtifactError, FileError, OnnxlaError
from onnxla.files import open_file
from onnxla.runtime.artifact import COMMENT_FORM, COMMENT_SIZE, FORMAT_VERSION, Artifact, Section
from onnxla.runtime.digest import checksum_of, digest_of
from onnxla.runtime.manifest import (
    STRING,
    Json,
    count,
    results_of_json,
    shape_of_json,
    signature_of_json,
    step_of_json,
    tensors_of_json,
    typed,
    vocabularies_of_json,
)
from onnxla.runtime.mixed_parts import Codec, plan_of_json
from onnxla.runtime.padding import Padding
from onnxla.runtime.program import Program
from onnxla.runtime.shared_pages import MOST_EXTENTS, PAGE, map_image
from onnxla.runtime.tensors import Array, TensorSignature, dtype_of

_MAX_MANIFEST = 256 << 20


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
        self._sections = typed(self._manifest["sections"], dict)

    def artifact(self) -> Artifact:
        interface = signature_of_json(self._manifest["signature"])
        programs = tuple(self._program(p) for p in typed(self._manifest["programs"], list))
        stored = typed(self._manifest.get("mixed", []), list)
        if not programs and not stored:
            raise ArtifactError("holds no code")
        state = self._arrays(self._manifest["state"])
        codec = Codec(arrays=self._arrays, weights=self._large_arrays, section=self.section)
        mixed = tuple(plan_of_json(plan, programs, interface, codec) for plan in stored)
        return Artifact(interface, programs, typed(self._manifest["about"], dict), state, mixed)

    def _large_arrays(self, rows: Json) -> dict[str, Array]:
        """Arrays in place, which nobody may write to."""
        found = {}
        for name, element, shape, section in typed(rows, list):
            tensor = TensorSignature(typed(name, str), typed(element, str), shape_of_json(shape))
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
            section, start, length = self.weights(typed(name, str)), count(offset), count(size)
            if start % PAGE or start + length > len(section):
                raise ArtifactError(f"{length} bytes of weights at {start} do not fit section {name}")
            parts.append((count(self._sections[name]["offset"]) + start, section[start : start + length]))
        if len(parts) == 1:
            return np.asarray(parts[0][1])
        if any(len(data) % PAGE or not len(data) for _, data in parts[:-1]) or not parts[-1][1]:
            raise ArtifactError("the manifest is malformed: weights in parts that are no pages")
        return map_image(self._descriptor, [(place, len(data)) for place, data in parts])

    def name_of(self, value: Json) -> str:
        """The name of a section whose bytes are in the file, and have a digest."""
        name: str = typed(value, str)
        self._place(name)
        typed(self._sections[name]["digest"], str)
        return name

    def _place(self, name: str) -> memoryview:
        row = typed(self._sections[typed(name, str)], dict)
        return self._range(count(row["offset"]), count(row["size"]))

    def _range(self, offset: int, size: int) -> memoryview:
        if offset % PAGE or offset + size > len(self._data):
            raise ArtifactError(f"a section of {size} bytes at {offset} does not fit the file")
        return self._data[offset : offset + size]

    def _read_manifest(self) -> dict[str, Json]:
        found = COMMENT_FORM.fullmatch(self._data[-COMMENT_SIZE:])
        if found is None:
            raise ArtifactError("is not an onnxla artifact, or not all of one")
        if int(found[2]) > _MAX_MANIFEST:
            raise ArtifactError(f"the manifest has {int(found[2])} bytes, more than {_MAX_MANIFEST}")
        text = bytes(self._range(int(found[1]), int(found[2])))
        if digest_of(text) != found[3].decode():
            raise ArtifactError("the manifest is damaged: its digest differs")
        manifest: dict[str, Json] = typed(json.loads(text), dict)
        version = manifest.get("format_version")
        if version != FORMAT_VERSION:
            raise ArtifactError(
                f"has format version {version}, this onnxla reads version {FORMAT_VERSION}; compile the model again"
            )
        return manifest

    def _program(self, stored: Json) -> Program:
        outputs = tensors_of_json(stored["outputs"])
        return Program(
            inputs=tensors_of_json(stored["inputs"]),
            outputs=outputs,
            results=results_of_json(stored["results"], outputs),
            vocabularies=vocabularies_of_json(stored["vocabularies"]),
            objects=tuple(self.section(name) for name in typed(stored["objects"], list)),
            thread_pool=self.section(stored["thread_pool"]),
            weights=self._image(typed(stored["weights"], list)),
            constants=self._arrays(stored["constants"]),
            state=tensors_of_json(stored["state"]),
            texts=_Texts(self, {stage: self.name_of(n) for stage, n in typed(stored["texts"], dict).items()}),
            padding=None if stored["padding"] is None else Padding.from_json(stored["padding"]),
            arena_bytes=count(stored["arena_bytes"]),
            intermediate_bytes=count(stored["intermediate_bytes"]),
            instruction_count=count(stored["instruction_count"]),
            kernel_count=count(stored["kernel_count"]),
            steps=tuple(map(step_of_json, typed(stored["steps"], list))),
            triple=typed(stored["triple"], str),
            cpu=typed(stored["cpu"], str),
            features=tuple(typed(f, str) for f in typed(stored["features"], list)),
        )

    def _arrays(self, rows: Json) -> dict[str, Array]:
        return {typed(row[0], str): self._constant(row) for row in typed(rows, list)}

    def _constant(self, row: Json) -> Array:
        name, element, shape, section = row
        if element == STRING:
            strings = [typed(s, str) for s in typed(json.loads(self.section(section)), list)]
            return np.array(strings, object).reshape(shape_of_json(shape))
        signature = TensorSignature(name, element, shape_of_json(shape))
        return np.frombuffer(self.section(section), np.uint8).view(dtype_of(element)).reshape(signature.shape)
