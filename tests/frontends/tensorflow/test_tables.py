"""Hash tables that are filled from constants, where they stand or by a function that an initializer calls."""

from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.errors import UnsupportedOpError

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
