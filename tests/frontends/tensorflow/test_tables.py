"""Hash tables that are filled from constants, in place or by an initializer, and from files of a SavedModel."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.errors import CompileError, UnsupportedOpError

CONST = """
node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT64 }} }}
       attr {{ key: "value" value {{ tensor {{ dtype: DT_INT64 tensor_shape {{ {dims} }} {values} }} }} }} }}
"""
GRAPH = """
node { name: "table" op: "HashTableV2" attr { key: "key_dtype" value { type: DT_INT64 } }
       attr { key: "value_dtype" value { type: DT_INT64 } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } }
       attr { key: "shape" value { shape { dim { size: 2 } dim { size: -1 } } } } }
node { name: "found" op: "LookupTableFindV2" input: "table" input: "x" input: "default" }
node { name: "size" op: "LookupTableSizeV2" input: "table" }
"""
IMPORT = 'node { name: "fill" op: "LookupTableImportV2" input: "table" input: "keys" input: "values" }\n'
CALL = """
node { name: "fill" op: "StatefulPartitionedCall" input: "table" input: "keys" input: "values"
       attr { key: "f" value { func { name: "initializer" } } } }
library { function { signature { name: "initializer" input_arg { name: "t" type: DT_RESOURCE }
            input_arg { name: "k" type: DT_INT64 } input_arg { name: "v" type: DT_INT64 } }
  node_def { name: "import" op: "LookupTableImportV2" input: "t" input: "k" input: "v" } } }
"""


def constant(name: str, *values: int, scalar: bool = False) -> str:
    dims = "" if scalar else f"dim {{ size: {len(values)} }}"
    return CONST.format(name=name, dims=dims, values=" ".join(f"int64_val: {v}" for v in values))


def graph(folder: Path, filled: str, keys: tuple[int, ...], values: tuple[int, ...]) -> Path:
    path = folder / "graph.pbtxt"
    contents = constant("keys", *keys) + constant("values", *values) + constant("default", -1, scalar=True)
    path.write_text(contents + GRAPH + filled)
    return path


@pytest.mark.parametrize("filled", [IMPORT, CALL])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
def test_each_key_gives_its_value_and_others_the_default(tmp_path: Path, filled: str, count: int) -> None:
    rng = np.random.default_rng(count)
    keys = tuple(rng.choice(np.arange(-20, 20), count, replace=False).tolist())
    path = graph(tmp_path, filled, keys, tuple(range(100, 100 + count)))
    model = onnxla.compile(path, outputs=["found", "size"], options={"opt_level": 0})
    x = np.array([[*keys, 99, np.iinfo(np.int64).min], [*keys[::-1], -99, np.iinfo(np.int64).max]])
    found, size = model(x)
    rows = dict(zip(keys, range(100, 100 + count), strict=True))
    assert size == count and found.tolist() == [[rows.get(k, -1) for k in row] for row in x.tolist()]


@pytest.mark.parametrize("filled", ["", IMPORT + IMPORT.replace("fill", "again")])
def test_a_table_that_is_not_filled_once_is_refused(tmp_path: Path, filled: str) -> None:
    path = graph(tmp_path, filled, (1, 2), (3, 4))
    with pytest.raises(UnsupportedOpError, match="what is in the table table is not known"):
        onnxla.compile(path, outputs=["found"], dims={"x.1": 2})


SAVED = Path(__file__).parent / "saved_models" / "tables"


def test_files_fill_tables_as_in_tensorflow() -> None:
    """Columns, whole lines and line numbers; a first part of a file; lines that end in two characters."""
    with np.load(SAVED.with_suffix(".npz")) as kept:
        model = onnxla.compile(SAVED, signature="numbers", options={"opt_level": 0})
        names = [o.name for o in model.get_outputs()]
        for name, value in zip(names, model.run(None, {"x": kept["x"]}), strict=True):
            assert value.dtype == kept[name].dtype and np.array_equal(value, kept[name]), name


def test_strings_are_refused_with_everything_else() -> None:
    with pytest.raises(CompileError) as caught:
        onnxla.compile(SAVED, signature="strings")
    text = str(caught.value)
    assert len(caught.value.problems) == 3
    assert "the input s is tensor(string)" in text
    assert "a table of strings is asked at run time" in text
    assert "tf.unique gives as many values as are different" in text


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("30\nx\n20\n", "line 2 of a table's file holds b'x', not a number of s64"),
        ("30\n\n20\n", "line 2 of a table's file is empty"),
        ("30\n30\n20\n", "has a key twice"),
        ("30\n99999999999999999999\n20\n", "too large for s64"),
        (None, "ids.txt"),
    ],
)
def test_a_file_that_makes_no_table_is_refused(tmp_path: Path, contents: str | None, message: str) -> None:
    folder = shutil.copytree(SAVED, tmp_path / "tables")
    file = folder / "assets" / "ids.txt"
    if contents is None:
        file.unlink()
        file.symlink_to(SAVED / "assets" / "ids.txt")
    else:
        file.write_text(contents)
    with pytest.raises(UnsupportedOpError, match="what is in the table .* cannot be read: .*" + message):
        onnxla.compile(folder, signature="numbers", dims={"x.0": 2})


def test_a_file_that_is_too_short_fills_nothing(tmp_path: Path) -> None:
    folder = shutil.copytree(SAVED, tmp_path / "tables")
    (folder / "assets" / "ids.txt").write_text("1\n2\n")
    with pytest.raises(UnsupportedOpError, match="what is in the table .* is not known"):
        onnxla.compile(folder, signature="numbers", dims={"x.0": 2})
