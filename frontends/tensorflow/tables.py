"""Hash tables whose contents are known: what initializers put into them, found without running them.

A SavedModel's graph calls a function for each table that imports keys and values, which are constants of the function
or of the graph that passes them, or reads them from a file among the model's assets; graphs of TensorFlow 1 import
them where they stand.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from onnxla.errors import ModelFormatError
from onnxla.frontends.tensorflow.assets import FILLED_FROM_FILES, Assets, rows_of_file
from onnxla.frontends.tensorflow.graph import Body, Edge, Node
from onnxla.frontends.tensorflow.tensors import tensor_array
from onnxla.hlo.types import Array

TABLES = ("HashTableV2", "HashTable")
_IMPORTS = ("LookupTableImportV2", "LookupTableImport", "InitializeTableV2", "InitializeTable")
_CALLS = ("StatefulPartitionedCall", "PartitionedCall")
_PASSED_ON = ("Identity",)
_DEEPEST = 8


@dataclass(frozen=True, eq=False)
class Table:
    """Keys and their values, side by side."""

    keys: Array
    values: Array
    fault: str = ""
    """Why the file that fills it makes no table."""


@dataclass(frozen=True)
class _Place:
    """A graph, and for a function's what its arguments are: edges in the graph that calls it."""

    body: Body
    arguments: Mapping[str, tuple["_Place", Edge]]


def table_name(node: Node) -> str:
    """The name under which nodes share a table."""
    shared = (
        node.attributes["shared_name"].s.decode(errors="backslashreplace") if "shared_name" in node.attributes else ""
    )
    return shared or node.name


def find_tables(body: Body, functions: Mapping[str, Body], assets: Assets | None = None) -> dict[str, Table]:
    """The tables that are filled once, from constants or from assets. Raises ModelFormatError for constants that make
    none."""
    found: dict[str, list[Table | None]] = {}
    known = _with_variables(assets or Assets(), body)
    for name, table in _imported(_Place(body, {}), functions, known, 0):
        found.setdefault(name, []).append(table)
    return {name: tables[0] for name, tables in found.items() if len(tables) == 1 and tables[0] is not None}


def _with_variables(assets: Assets, body: Body) -> Assets:
    """The assets, and the variables that hold the name of one, which TensorFlow 2 assigns when a model is loaded."""
    held: dict[str, set[str]] = {}
    for node in body.nodes.values():
        if node.op in ("AssignVariableOp", "Assign") and len(node.inputs) >= 2:
            held.setdefault(node.inputs[0].node, set()).add(assets.files.get(node.inputs[1].node, ""))
    once = {name: files.pop() for name, files in held.items() if len(files) == 1}
    return replace(assets, files={**{n: f for n, f in once.items() if f}, **assets.files})


def _imported(
    place: _Place, functions: Mapping[str, Body], assets: Assets, depth: int
) -> Iterator[tuple[str, Table | None]]:
    for node in place.body.nodes.values():
        if node.op in _IMPORTS and len(node.inputs) >= 3:
            table, keys, values = (_origin(place, edge) for edge in node.inputs[:3])
            if table is not None and table.op in TABLES:
                yield table_name(table), _table(keys, values)
        elif node.op in FILLED_FROM_FILES and len(node.inputs) >= 2:
            table, file = (_origin(place, edge) for edge in node.inputs[:2])
            if table is not None and table.op in TABLES:
                yield table_name(table), _table_of_file(table, node, file, assets)
        elif node.op in _CALLS and depth < _DEEPEST:
            function = functions.get(node.attributes["f"].func.name)
            if function is not None:
                passed = zip(function.arguments, node.inputs, strict=False)
                inner = _Place(function, {a.name: (place, edge) for a, edge in passed})
                yield from _imported(inner, functions, assets, depth + 1)


def _origin(place: _Place, edge: Edge) -> Node | None:
    """The node that an edge comes from, in this graph or the one that calls it."""
    for _ in range(1000):
        node = place.body.nodes.get(edge.node)
        if node is None:
            if edge.node not in place.arguments:
                return None
            place, edge = place.arguments[edge.node]
        elif node.op in _PASSED_ON and node.inputs:
            edge = node.inputs[0]
        else:
            return node
    return None


def _table(keys: Node | None, values: Node | None) -> Table | None:
    if keys is None or values is None or keys.op != "Const" or values.op != "Const":
        return None
    both = [tensor_array(node.attributes["value"].tensor).reshape(-1) for node in (keys, values)]
    if both[0].size != both[1].size:
        raise ModelFormatError(f"{keys.name} and {values.name} fill a table, and differ in length")
    return Table(both[0], both[1])


def _table_of_file(table: Node, filling: Node, file: Node | None, assets: Assets) -> Table | None:
    name = file.name if file is not None else ""
    if file is not None and file.op == "ReadVariableOp" and file.inputs:
        name = file.inputs[0].node
    try:
        data = assets.read(name)
        rows = rows_of_file(data, filling, table) if data is not None else None
        if rows is not None and len(set(rows[0].tolist())) < rows[0].size:
            raise ModelFormatError("a table's file has a key twice")
    except ModelFormatError as error:
        return Table(np.zeros(0), np.zeros(0), str(error))
    return Table(*rows) if rows is not None else None
