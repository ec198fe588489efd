"""A decision forest as flat tables, and the walk through all of its trees at once.

Every node has a row in the tables, leaves point to themselves, so after `depth` steps each tree of
each row of X stands on its leaf. A step is a few gathers over [rows, trees].
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, TensorType, element_of
from onnxla.hlo.types import Array as Numbers

LESS, EQUAL, GREATER, UNORDERED = 1, 2, 4, 8
RELATIONS = {
    "BRANCH_LEQ": LESS | EQUAL,
    "BRANCH_LT": LESS,
    "BRANCH_GTE": GREATER | EQUAL,
    "BRANCH_GT": GREATER,
    "BRANCH_EQ": EQUAL,
    "BRANCH_NEQ": LESS | GREATER | UNORDERED,
}
"""For each kind of node the relations of feature and threshold that take the true branch."""
DIRECTIONS = {
    LESS | EQUAL: "LE",
    LESS: "LT",
    GREATER | EQUAL: "GE",
    GREATER: "GT",
    EQUAL: "EQ",
    LESS | GREATER | UNORDERED: "NE",
}


class MalformedForest(Exception):
    """The attributes do not describe a forest; the message says why."""


@dataclass(frozen=True)
class Forest:
    """Tables with one row for each node; `children` has two, the false child first."""

    feature: Numbers
    threshold: Numbers
    relation: Numbers
    missing_is_true: Numbers
    children: Numbers
    roots: Numbers

    @property
    def depth(self) -> int:
        """Steps from the roots until every tree stands on a leaf. Raises MalformedForest for a cycle."""
        frontier = np.unique(self.roots)
        for steps in range(len(self.feature) + 1):
            moving = self.children[frontier] != frontier[:, None]
            if not moving.any():
                return steps
            frontier = np.unique(self.children[frontier])
        raise MalformedForest("the nodes of a tree form a cycle")

    def check(self, features: int) -> None:
        """Raise MalformedForest unless every index is in range."""
        nodes = len(self.feature)
        if nodes and not (0 <= self.feature.min() and self.feature.max() < max(features, 1)):
            raise MalformedForest(f"a node reads a feature outside of 0..{features - 1}")
        for table in (self.children, self.roots):
            if table.size and not (0 <= table.min() and table.max() < nodes):
                raise MalformedForest("a node names a child that is not there")

    def leaves(self, b: Builder, x: Instruction) -> Instruction:
        """The leaf [rows, trees] (s32) that each tree reaches for each row of `x` [rows, features]."""
        rows, features = x.shape
        self.check(features)
        shape = (rows, len(self.roots))
        start = b.broadcast(b.constant(self.roots, S32), shape, [1])
        depth = self.depth
        if depth == 0:
            return start
        init = b.tuple(b.constant(0, S32), start, b.reshape(x, [rows * features]))
        body = Builder("forest_step", b.source)
        state = body.parameter(init.type)
        step, nodes, values = (body.get_tuple_element(state, k) for k in range(3))
        below = self._step(body, nodes, values, features)
        root = body.tuple(body.add(step, body.constant(1, S32)), below, values)
        condition = Builder("forest_deeper", b.source)
        step = condition.get_tuple_element(condition.parameter(init.type), 0)
        more = condition.compare(step, condition.constant(depth, S32), "LT")
        return b.get_tuple_element(b.while_(init, condition.build(more), body.build(root)), 1)

    def _step(self, b: Builder, nodes: Instruction, values: Instruction, features: int) -> Instruction:
        """From `nodes` [rows, trees] one level down; `values` are the rows of X one after the other."""

        def lookup(table: Numbers) -> Instruction:
            return b.take(b.constant(table), nodes, 0)

        row_start = b.multiply(b.iota(TensorType(S32, nodes.shape), 0), b.full_like(nodes, features))
        value = b.take(values, b.add(row_start, lookup(self.feature.astype(np.int32))), 0)
        threshold = lookup(self.threshold)
        value = b.convert(value, threshold.tensor_type.element)
        is_true = self._holds(b, value, threshold, lookup)
        if self.missing_is_true.any():
            missing = b.and_(lookup(self.missing_is_true), b.is_nan(value))
            is_true = b.or_(is_true, missing)
        child = b.add(b.multiply(nodes, b.full_like(nodes, 2)), b.convert(is_true, S32))
        return b.take(b.constant(self.children.reshape(-1), S32), child, 0)

    def _holds(
        self, b: Builder, value: Instruction, threshold: Instruction, lookup: Callable[[Numbers], Instruction]
    ) -> Instruction:
        inner = np.unique(self.relation[self.children[:, 0] != np.arange(len(self.feature))])
        if len(inner) == 1:
            return b.compare(value, threshold, DIRECTIONS[int(inner[0])])
        wanted = lookup(self.relation.astype(np.int32))

        def when(direction: str, code: int, otherwise: Instruction) -> Instruction:
            return b.select(b.compare(value, threshold, direction), b.full_like(wanted, code), otherwise)

        found = when("LT", LESS, when("EQ", EQUAL, when("GT", GREATER, b.full_like(wanted, UNORDERED))))
        return b.compare(b.and_(wanted, found), b.full_like(wanted, 0), "NE")


def forest_of_nodes(
    tree_ids: Numbers,
    node_ids: Numbers,
    modes: list[str],
    feature: Numbers,
    threshold: Numbers,
    true_ids: Numbers,
    false_ids: Numbers,
    missing_is_true: Numbers,
) -> tuple[Forest, dict[tuple[int, int], int]]:
    """A forest from the `nodes_*` attributes of opset 1 to 4, and the row of each (tree, node).

    Nodes are named by tree and number. The first node of a tree that is nobody's child is its root.
    """
    count = len(node_ids)
    arrays = (tree_ids, modes, feature, threshold, true_ids, false_ids, missing_is_true)
    if any(len(a) != count for a in arrays):
        raise MalformedForest("the nodes_* attributes differ in length")
    unknown = set(modes) - set(RELATIONS) - {"LEAF"}
    if unknown:
        raise MalformedForest(f"nodes_modes has {', '.join(sorted(unknown))}, which is not known")
    row = {(int(t), int(n)): i for i, (t, n) in enumerate(zip(tree_ids, node_ids, strict=True))}
    if len(row) != count:
        raise MalformedForest("two nodes of a tree have the same number")
    children = np.repeat(np.arange(count, dtype=np.int32)[:, None], 2, axis=1)
    for i in (i for i, mode in enumerate(modes) if mode != "LEAF"):
        for side, ids in enumerate((false_ids, true_ids)):
            child = row.get((int(tree_ids[i]), int(ids[i])))
            if child is None:
                raise MalformedForest(f"tree {tree_ids[i]} has no node {ids[i]}")
            children[i, side] = child
    is_child = np.zeros(count, bool)
    is_child[children[children != np.arange(count)[:, None]]] = True
    first: dict[int, int] = {}
    for root in np.flatnonzero(~is_child):
        first.setdefault(int(tree_ids[root]), int(root))
    if len(first) != len(np.unique(tree_ids)):
        raise MalformedForest("the nodes of a tree form a cycle")
    roots = np.array(list(first.values()), np.int32)
    relation = np.array([RELATIONS.get(mode, EQUAL) for mode in modes], np.int32)
    is_leaf = np.array([mode == "LEAF" for mode in modes], bool)
    forest = Forest(
        np.where(is_leaf, 0, feature).astype(np.int32), threshold, relation, missing_is_true, children, roots
    )
    return forest, row


def with_thresholds_in(forest: Forest, dtype: np.dtype[np.generic]) -> Forest:
    """The same forest comparing in `dtype`."""
    assert element_of(dtype).is_float
    return replace(forest, threshold=forest.threshold.astype(dtype))
