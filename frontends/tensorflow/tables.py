"""Hash tables whose contents are constants: what initializers put into them, found without running them.

A SavedModel's graph calls a function for each table that imports keys and values, which are constants of the function
or of the graph that passes them; graphs of TensorFlow 1 import them where they stand.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnxla.errors import ModelFormatError
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


def find_tables(body: Body, functions: Mapping[str, Body]) -> dict[str, Table]:
    """The tables that are filled once, from constants."""
    found: dict[str, list[Table | None]] = {}
    for name, table in _imported(_Place(body, {}), functions, 0):
        found.setdefault(name, []).append(table)
    return {name: tables[0] for name, tables in found.items() if len(tables) == 1 and tables[0] is not None}


def _imported(place: _Place, functions: Mapping[str, Body], depth: int) -> Iterator[tuple[str, Table | None]]:
    for node in place.body.nodes.values():
        if node.op in _IMPORTS and len(node.inputs) >= 3:
            table, keys, values = (_origin(place, edge) for edge in node.inputs[:3])
            if table is not None and table.op in TABLES:
                yield table_name(table), _table(keys, values)
        elif node.op in _CALLS and depth < _DEEPEST:
            function = functions.get(node.attributes["f"].func.name)
            if function is not None:
                passed = zip(function.arguments, node.inputs, strict=False)
                inner = _Place(function, {a.name: (place, edge) for a, edge in passed})
                yield from _imported(inner, functions, depth + 1)


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
