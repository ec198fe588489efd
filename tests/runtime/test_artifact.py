"""The artifact file: written once, the same bytes each time; anything else than what was written is refused."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxla.errors import ArtifactError
from onnxla.runtime.artifact import Artifact
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.runtime.artifact_writing import write_artifact
from onnxla.runtime.digest import digest_of
from onnxla.runtime.executable import Executable
from onnxla.runtime.shared_pages import PAGE
from onnxla.runtime.signature import ModelSignature, model_tensor
from onnxla.runtime.tensors import Array
from tests.runtime.hand_written import expected, scale_and_add

ROWS = 4
X = np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16)


def artifact(*rows: int) -> Artifact:
    programs = tuple(scale_and_add(n) for n in rows or (ROWS,))
    signature = ModelSignature(
        tuple(model_tensor(t) for t in programs[0].inputs), tuple(model_tensor(t) for t in programs[0].outputs)
    )
    return Artifact(signature, programs, {"onnxla": "test"})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artifact") / "model.onnxla"
    write_artifact(path, artifact())
    return path


def run(path: Path, x: Array = X) -> Array:
    return Executable(read_artifact(path).programs[0]).run([x], 2)[0]


def test_round_trip(written: Path) -> None:
    np.testing.assert_array_equal(run(written), expected(X, ROWS))
    stored, original = read_artifact(written), artifact()
    assert stored.signature == original.signature
    assert stored.about == original.about
    assert stored.programs[0].steps == original.programs[0].steps
    assert dict(stored.programs[0].texts) == original.programs[0].texts


def test_the_same_model_gives_the_same_bytes(written: Path, tmp_path: Path) -> None:
    write_artifact(tmp_path / "again.onnxla", artifact())
    assert (tmp_path / "again.onnxla").read_bytes() == written.read_bytes()


def test_weights_stay_in_the_file(written: Path) -> None:
    weights = read_artifact(written).programs[0].weights
    assert weights.ctypes.data % PAGE == 0
    assert not weights.flags.owndata and not weights.flags.writeable


def test_every_entry_starts_on_a_page(written: Path) -> None:
    data = written.read_bytes()
    with zipfile.ZipFile(written) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            header = data[info.header_offset : info.header_offset + 30]
            start = info.header_offset + 30 + int.from_bytes(header[26:28], "little")
            start += int.from_bytes(header[28:30], "little")
            assert start % PAGE == 0
            assert data[start : start + info.file_size] == archive.read(info)


def test_equal_sections_are_stored_once(tmp_path: Path) -> None:
    write_artifact(tmp_path / "model.onnxla", artifact(2, 2, 3))
    with zipfile.ZipFile(tmp_path / "model.onnxla") as archive:
        names = archive.namelist()
    assert sum(name.endswith("thread_pool.o") for name in names) == 1
    assert sum(name.startswith("weights/") for name in names) == 2


def test_constants_come_back(tmp_path: Path) -> None:
    value = np.array([[1, 2], [3, 4]], np.int64)
    program = scale_and_add(1, constants={"shape": value})
    write_artifact(tmp_path / "model.onnxla", Artifact(artifact().signature, (program,)))
    stored = read_artifact(tmp_path / "model.onnxla").programs[0].constants
    assert list(stored) == ["shape"]
    np.testing.assert_array_equal(stored["shape"], value)


def test_a_program_without_weights(tmp_path: Path) -> None:
    program = scale_and_add(0, constants={"empty": np.zeros((0, 3), np.float16)})
    write_artifact(tmp_path / "model.onnxla", Artifact(artifact().signature, (program,)))
    stored = read_artifact(tmp_path / "model.onnxla").programs[0]
    assert stored.weights.size == 0
    assert stored.constants["empty"].shape == (0, 3)
    assert Executable(stored).run([np.zeros((0, 16), np.float32)], 1)[0].shape == (0, 16)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_flipped_bytes_are_noticed_or_harmless(written: Path, data: st.DataObject) -> None:
    damaged = bytearray(written.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] ^= data.draw(st.integers(1, 255))
    path = written.with_name("flipped.onnxla")
    path.write_bytes(damaged)
    try:
        result = run(path)
    except ArtifactError:
        return
    np.testing.assert_array_equal(result, expected(X, ROWS))


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1))
def test_a_truncated_file_is_refused(written: Path, part: float) -> None:
    whole = written.read_bytes()
    path = written.with_name("cut.onnxla")
    path.write_bytes(whole[: int(part * (len(whole) - 1))])
    with pytest.raises(ArtifactError):
        read_artifact(path)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_are_refused(written: Path, junk: bytes) -> None:
    path = written.with_name("junk.onnxla")
    path.write_bytes(junk)
    with pytest.raises(ArtifactError):
        read_artifact(path)


def rewritten(source: Path, target: Path, **changes: object) -> Path:
    """A copy of the artifact with other fields in the manifest, digests made to fit: a hostile file."""
    with zipfile.ZipFile(source) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        offset = int(archive.comment.split()[4])
    program = manifest["programs"][0]
    for name, value in changes.items():
        (program if name in program else manifest)[name] = value
    text = json.dumps(manifest).encode()
    comment = f"onnxla artifact: manifest at {offset:020d} of {len(text):020d} bytes, digest {digest_of(text)}"
    target.write_bytes(source.read_bytes()[:offset] + text + comment.encode())
    return target


def test_another_format_version_is_refused(written: Path, tmp_path: Path) -> None:
    path = rewritten(written, tmp_path / "future.onnxla", format_version=999)
    with pytest.raises(ArtifactError, match="has format version 999, this onnxla reads version 5"):
        read_artifact(path)


def test_sections_outside_the_file_are_refused(written: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(written) as archive:
        sections = json.loads(archive.read("manifest.json"))["sections"]
    for row in (
        {"offset": 1 << 40},
        {"size": 1 << 40},
        {"offset": -4096},
        {"size": -1},
        {"offset": 1},
        {"offset": 1.5},
    ):
        changed = {**sections, "weights/0.bin": {**sections["weights/0.bin"], **row}}
        with pytest.raises(ArtifactError):
            read_artifact(rewritten(written, tmp_path / "outside.onnxla", sections=changed))


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": [["x", "f32", [-1, 16]]]},
        {"inputs": [["x", "f32", [1 << 62, 1 << 62]]]},
        {"inputs": [["x", "no-such-type", [4, 16]]]},
        {"inputs": "x"},
        {"outputs": [["y"]]},
        {"objects": ["code/missing.o"]},
        {"objects": None},
        {"weights": 7},
        {"arena_bytes": -5},
        {"arena_bytes": "many"},
        {"steps": [[1, 2, 3, 4, 5]]},
        {"features": {"avx2": True}},
        {"programs": []},
        {"signature": []},
        {"sections": []},
        {"sections": {}},
    ],
    ids=str,
)
def test_a_malformed_manifest_is_refused(written: Path, tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(ArtifactError):
        read_artifact(rewritten(written, tmp_path / "malformed.onnxla", **changes))


@pytest.mark.parametrize("texts", [{"hlo": "missing"}, {"hlo": 7}, {"hlo": None}, []], ids=str)
def test_texts_that_are_nowhere_are_refused_before_somebody_reads_them(
    written: Path, tmp_path: Path, texts: object
) -> None:
    with pytest.raises(ArtifactError):
        read_artifact(rewritten(written, tmp_path / "texts.onnxla", texts=texts))


def test_a_foreign_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.onnxla"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", "{}")
    with pytest.raises(ArtifactError):
        read_artifact(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot read .*absent.onnxla: No such file"):
        read_artifact(tmp_path / "absent.onnxla")


def test_damaged_weights_are_noticed_unless_told_not_to_look(written: Path, tmp_path: Path) -> None:
    original = written.read_bytes()
    weights = bytes(read_artifact(written).programs[0].weights)
    place = original.index(weights)
    path = tmp_path / "damaged.onnxla"
    path.write_bytes(original[:place] + bytes([original[place] ^ 1]) + original[place + 1 :])
    for how in ("fast", "full"):
        with pytest.raises(ArtifactError, match=r"section weights/0\.bin is damaged"):
            read_artifact(path, verify_weights=how)
    assert read_artifact(path, verify_weights="off").programs


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot write"):
        write_artifact(tmp_path / "no" / "folder.onnxla", artifact())
    (tmp_path / "taken").mkdir()
    with pytest.raises(ArtifactError, match="cannot write"):
        write_artifact(tmp_path / "taken", artifact())
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_an_artifact_needs_neither_onnx_nor_the_compiler(written: Path) -> None:
    program = f"""
import sys
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.runtime.digest import digest_of
from onnxla.runtime.executable import Executable
import numpy as np
y = Executable(read_artifact({str(written)!r}).programs[0]).run([np.zeros(({ROWS}, 16), np.float32)], 2)[0]
assert y[0, 3] == 3
stages = ("onnx", "onnxruntime", "ml_dtypes", "onnxla.hlo", "onnxla.frontends", "onnxla.passes", "onnxla.codegen")
assert not [s for s in stages if s in sys.modules], sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])
