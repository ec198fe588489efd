"""Hash tables with constant contents: a search in sorted keys, unrolled."""

import numpy as np

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.tables import Table
from onnxla.frontends.tensorflow.values import StringConstant, TableHandle, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64


@tf_op("HashTableV2", "HashTable")
def hash_table(node: NodeView, b: Builder) -> TableHandle:
    shared = node.string("shared_name", "")
    return TableHandle(shared or node.source.name)


def _contents(node: NodeView) -> Table:
    handle = node.value(0)
    if not isinstance(handle, TableHandle):
        node.unsupported("the table is not a hash table", "tables with constant contents are supported")
    table = node.host.table(handle.name)
    if table is None:
        node.unsupported(
            f"what is in the table {handle.name} is not known: "
            "it is not filled once, from constants or from a file of the SavedModel",
            "fill it from a KeyValueTensorInitializer, or look up before the model runs",
        )
    if table.fault:
        node.unsupported(
            f"what is in the table {handle.name} cannot be read: {table.fault}", "mend the file in assets/"
        )
    return table


@tf_op("LookupTableSizeV2", "LookupTableSize")
def size(node: NodeView, b: Builder) -> Instruction:
    return b.constant(_contents(node).keys.size, S64)


@tf_op("LookupTableFindV2", "LookupTableFind")
def find(node: NodeView, b: Builder) -> Value:
    """The value of each key, the default where there is none."""
    table, asked, default = _contents(node), node.value(1), node.value(2)
    known = asked.array if isinstance(asked, StringConstant) else node.known(1)
    if known is not None:
        return _of_known_keys(node, b, table, known, default)
    if not isinstance(asked, Instruction) or not isinstance(default, Instruction) or table.values.dtype == object:
        node.unsupported("a table of strings is asked at run time", "look up before the model runs")
    if table.keys.dtype != asked.tensor_type.element.dtype:
        node.shape_error(f"the keys are {table.keys.dtype}, and {asked.type} is looked up")
    order = np.argsort(table.keys, kind="stable")
    keys, values = table.keys[order], table.values[order]
    element = default.tensor_type.element
    otherwise = b.broadcast_scalar(b.reshape(default, ()), asked.shape)
    if not keys.size or 0 in asked.shape:
        return otherwise
    sorted_keys = b.constant(keys)
    place = b.full(asked.shape, 0, S64)
    step = 1 << (max(int(keys.size) - 1, 1)).bit_length() - 1
    while step:  # the last place whose key is not above the one asked for
        next_place = b.add(place, b.full_like(place, step))
        inside = b.compare(next_place, b.full_like(place, int(keys.size)), "LT")
        below = b.compare(b.take(sorted_keys, next_place, 0), asked, "LE")
        place = b.select(b.and_(inside, below), next_place, place)
        step >>= 1
    found = b.compare(b.take(sorted_keys, place, 0), asked, "EQ")
    return b.select(found, b.take(b.constant(values.astype(element.dtype)), place, 0), otherwise)


def _of_known_keys(
    node: NodeView, b: Builder, table: Table, asked: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]", default: Value
) -> Value:
    rows = dict(zip(table.keys.tolist(), table.values.tolist(), strict=True))
    if table.values.dtype == object:
        if not isinstance(default, StringConstant):
            node.unsupported("a table of strings with a default that is not known", "make the default a constant")
        words = [rows.get(key, default.array.reshape(-1)[0]) for key in asked.reshape(-1).tolist()]
        return StringConstant(np.array(words, object).reshape(asked.shape))
    known = node.known(2)
    if known is None:
        node.unsupported("known keys with a default that is not known", "make the default a constant")
    values = [rows.get(key, known.reshape(-1)[0]) for key in asked.reshape(-1).tolist()]
    return b.constant(np.array(values, table.values.dtype).reshape(asked.shape))
