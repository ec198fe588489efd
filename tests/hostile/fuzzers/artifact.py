"""Artifacts: a file is read and its code linked, but never run, or refused.

The first byte of the data says what follows: a whole file; or the text of a manifest, put into a sound file under a
digest that fits, as whoever makes hostile files would.
"""

import json
import random
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from onnxla.errors import ArtifactError
from onnxla.runtime.artifact import Artifact
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.runtime.artifact_writing import write_artifact
from onnxla.runtime.consistency import require_consistent
from onnxla.runtime.digest import digest_of
from onnxla.runtime.linker import PAGE, Image
from onnxla.runtime.signature import ModelSignature, model_tensor
from tests.hostile.fuzzers.atheris_main import main
from tests.hostile.fuzzers.mutation import FLOATS, NUMBERS, mutate_bytes, mutate_text
from tests.hostile.fuzzers.target import Target
from tests.runtime.hand_written import scale_and_add

WHOLE, MANIFEST = b"\0", b"\1"


@cache
def sound_file() -> bytes:
    """A small artifact."""
    program = scale_and_add(4)
    signature = ModelSignature(tuple(map(model_tensor, program.inputs)), tuple(map(model_tensor, program.outputs)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnxla"
        write_artifact(path, Artifact(signature, (program,), {"key": {"model": "m"}}))
        return path.read_bytes()


@cache
def _manifest_place() -> int:
    comment = sound_file()[sound_file().rindex(b"onnxla artifact") :]
    return int(comment.split()[4])


@cache
def sound_manifest() -> bytes:
    comment = sound_file()[sound_file().rindex(b"onnxla artifact") :]
    place, size = int(comment.split()[4]), int(comment.split()[6])
    return sound_file()[place : place + size]


def with_manifest(text: bytes) -> bytes:
    """The sound file with another manifest, and the digest that fits it."""
    place = _manifest_place()
    comment = f"onnxla artifact: manifest at {place:020d} of {len(text):020d} bytes, digest {digest_of(text)}"
    return sound_file()[:place] + text + comment.encode()


def file_of(data: bytes) -> bytes:
    """The file that fuzzing data stand for."""
    return with_manifest(data[1:]) if data[:1] == MANIFEST else data[1:]


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory()


def run(data: bytes) -> None:
    path = Path(_folder().name) / "model.onnxla"
    path.write_bytes(file_of(data))
    artifact = read_artifact(path)
    require_consistent(artifact.signature, artifact.programs, artifact.state)
    for program in artifact.programs:
        assert program.arena_bytes >= 0
        with suppress(ArtifactError):
            assert all(isinstance(text, str) for text in program.texts.values())
        image = Image(program.objects)
        assert len(image.bytes_at(PAGE, lambda name: PAGE)) == image.size


def mutate(data: bytes, rng: random.Random) -> bytes:
    if data[:1] != MANIFEST:
        return data[:1] + mutate_bytes(data[1:], rng)
    try:
        manifest = json.loads(data[1:])
    except (ValueError, RecursionError):
        return MANIFEST + mutate_text(data[1:], rng)
    if rng.random() < 0.2:
        return MANIFEST + mutate_text(data[1:], rng)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_places(manifest))
        if places:
            holder, key = rng.choice(places)
            holder[key] = rng.choice(
                (rng.choice(NUMBERS), rng.choice(FLOATS), None, True, "", "x", "f32", [], {}, [[]], _other(places, rng))
            )
    return MANIFEST + json.dumps(manifest).encode()


def _other(places: list[tuple[Any, Any]], rng: random.Random) -> object:
    holder, key = rng.choice(places)
    return json.loads(json.dumps(holder[key]))


def _places(value: object) -> list[tuple[Any, Any]]:
    """Every place of a JSON document that holds a value: the list or dict, and the key."""
    found: list[tuple[Any, Any]] = []
    open_ = [value]
    for current in open_:
        pairs = (
            current.items() if isinstance(current, dict) else enumerate(current) if isinstance(current, list) else ()
        )
        for key, inner in pairs:
            found.append((current, key))
            open_.append(inner)
    return found


def seeds() -> list[bytes]:
    return [WHOLE + sound_file(), MANIFEST + sound_manifest()]


TARGET = Target("artifact", seeds, run, mutate)

if __name__ == "__main__":
    main(TARGET)
