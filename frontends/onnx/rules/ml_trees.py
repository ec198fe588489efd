"""TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble: leaves of a forest, summed up."""

from dataclasses import dataclass, fields

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.ml_forest import (
    RELATIONS,
    Forest,
    MalformedForest,
    forest_of_nodes,
    with_thresholds_in,
)
from onnxla.frontends.onnx.rules.ml_scores import (
    ML,
    class_labels,
    label_at,
    label_if,
    largest_column,
    pair_of,
    read_post_transform,
    transformed,
)
from onnxla.frontends.onnx.values import Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import F32, F64, Array

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass(frozen=True)
class Ensemble:
    """A forest and what its leaves add to each target."""

    forest: Forest
    weights: Array
    """[nodes, targets], zero where a node is no leaf or has no say."""
    has_weight: Array
    """[nodes, targets]: which of the weights are written down."""

    def total(self, b: Builder, x: Instruction, aggregate: str) -> Instruction:
        """[rows, targets]: the leaves' weights put together over all trees."""
        leaves = self.forest.leaves(b, x)
        if aggregate in ("SUM", "AVERAGE"):
            total = b.reduce_by("add", b.take(b.constant(self.weights), leaves, 0), [1])
            if aggregate == "SUM":
                return total
            return b.divide(total, b.full_like(total, len(self.forest.roots)))
        opcode, absent = ("minimum", np.inf) if aggregate == "MIN" else ("maximum", -np.inf)
        table = np.where(self.has_weight, self.weights, absent).astype(self.weights.dtype)
        extreme = b.reduce_by(opcode, b.take(b.constant(table), leaves, 0), [1])
        nothing = b.compare(extreme, b.full_like(extreme, absent), "EQ")
        return b.select(nothing, b.full_like(extreme, 0), extreme)


def _numbers(node: NodeView, name: str) -> Array:
    """A float attribute, or its `_as_tensor` twin in f64 (or whatever the tensor has)."""
    tensor = node.tensor(f"{name}_as_tensor")
    return np.array(node.floats(name, ()), np.float32) if tensor is None else tensor.reshape(-1)


def _read_ensemble(node: NodeView, kind: str, targets: int, weight_name: str) -> Ensemble:
    """The `nodes_*` attributes and the votes `{kind}_treeids`, `_nodeids`, `_ids` with their weights."""
    nodes = np.array(node.ints("nodes_nodeids", ()), np.int64)
    missing = node.ints("nodes_missing_value_tracks_true", ()) or (0,) * len(nodes)
    try:
        forest, row = forest_of_nodes(
            np.array(node.ints("nodes_treeids", ()), np.int64),
            nodes,
            list(node.strings("nodes_modes", ())),
            np.array(node.ints("nodes_featureids", ()), np.int64),
            _numbers(node, "nodes_values"),
            np.array(node.ints("nodes_truenodeids", ()), np.int64),
            np.array(node.ints("nodes_falsenodeids", ()), np.int64),
            np.array(missing, bool),
        )
    except MalformedForest as error:
        node.shape_error(str(error))
    votes = _numbers(node, weight_name)
    weights = np.zeros((len(nodes), targets), votes.dtype)
    has_weight = np.zeros(weights.shape, bool)
    owners = (node.ints(f"{kind}_treeids", ()), node.ints(f"{kind}_nodeids", ()), node.ints(f"{kind}_ids", ()))
    if any(len(ids) != len(votes) for ids in owners):
        node.shape_error(f"the {kind}_* attributes differ in length")
    for tree, number, target, weight in zip(*owners, votes, strict=True):
        place = row.get((tree, number))
        if place is None or not 0 <= target < targets:
            node.shape_error(f"a weight is for target {target} at node {number} of tree {tree}, which is not there")
        weights[place, target] += weight
        has_weight[place, target] = True
    return Ensemble(forest, weights, has_weight)


def _operand(node: NodeView, b: Builder, ensemble: Ensemble) -> tuple[Instruction, Ensemble]:
    """X in the type that comparisons are made in, f64 where X or the thresholds are, and the ensemble alike."""
    x = node.input(0)
    if len(x.shape) == 1:
        x = b.reshape(x, (1, *x.shape))
    if len(x.shape) != 2:
        node.shape_error(f"X must be [rows, features], it is {x.tensor_type}")
    double = x.tensor_type.element is F64 or ensemble.forest.threshold.dtype == np.float64
    dtype = np.dtype(np.float64 if double else np.float32)
    forest = with_thresholds_in(ensemble.forest, dtype)
    try:
        forest.check(x.shape[1])
        _ = forest.depth
    except MalformedForest as error:
        node.shape_error(str(error))
    ensemble = Ensemble(forest, ensemble.weights.astype(dtype), ensemble.has_weight)
    return b.convert(x, F64 if double else F32), ensemble


def _added(b: Builder, scores: Instruction, base: Array) -> Instruction:
    """scores [rows, targets] + base [targets], where there is a base."""
    if not base.size:
        return scores
    values = b.constant(base, scores.tensor_type.element)
    return b.add(scores, b.broadcast(values, scores.shape, [1]))


@onnx_op("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(node: NodeView, b: Builder) -> Instruction:
    targets, transform = node.int("n_targets", 1), read_post_transform(node)
    aggregate = node.word("aggregate_function", AGGREGATES, "SUM")
    x, ensemble = _operand(node, b, _read_ensemble(node, "target", targets, "target_weights"))
    base = _numbers(node, "base_values")
    if base.size not in (0, targets):
        node.shape_error(f"{base.size} base values do not fit {targets} targets")
    scores = _added(b, ensemble.total(b, x, aggregate), base)
    return b.convert(transformed(b, scores, transform), F32)


@onnx_op("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(node: NodeView, b: Builder) -> list[Value]:
    labels, transform = class_labels(node, "classlabels_int64s"), read_post_transform(node)
    x, ensemble = _operand(node, b, _read_ensemble(node, "class", len(labels), "class_weights"))
    base = _numbers(node, "base_values")
    scores = ensemble.total(b, x, "SUM")
    voted = ensemble.has_weight.any(axis=0)
    if len(labels) == 2:
        is_second, pair = _two_classes(node, b, ensemble, scores, base)
        return [label_if(b, is_second, labels[1], labels[0]), b.convert(pair, F32)]
    if base.size not in (0, len(labels)):
        node.shape_error(f"{base.size} base values do not fit {len(labels)} classes")
    scores = _added(b, scores, base)
    candidates = scores
    if not base.size and not voted.all():
        absent = b.constant(np.where(voted, 0, -np.inf), scores.tensor_type.element)
        candidates = b.add(scores, b.broadcast(absent, scores.shape, [1]))
    label = label_at(b, labels, largest_column(b, candidates))
    return [label, b.convert(transformed(b, scores, transform), F32)]


def _two_classes(
    node: NodeView, b: Builder, ensemble: Ensemble, scores: Instruction, base: Array
) -> tuple[Instruction, Instruction]:
    """Whether each row is of the second class, and the scores [rows, 2], as onnxruntime finds them.

    The second class wins when its score is above 0, or above 0.5 where only one class is voted for
    and all weights are positive. Where only the first is voted for, its score p counts for the
    second class, and the first gets 1 - p, or -p where a weight is negative.
    """
    transform, rows = read_post_transform(node), scores.shape[0]
    votes_first, votes_second = (bool(ensemble.has_weight[:, c].any()) for c in (0, 1))
    first, second = (b.slice(scores, [0, c], [rows, c + 1]) for c in (0, 1))
    if base.size == 2 and votes_second:
        second = b.add(first, b.full_like(first, float(base[1])))
        first = b.negate(second) if votes_first else b.full_like(second, 0)
    elif base.size and votes_first:
        first = b.add(first, b.full_like(first, float(base[0])))
    all_positive = bool((ensemble.weights >= 0).all())
    deciding = second if votes_second else first
    bound = 0.5 if all_positive and votes_first != votes_second else 0.0
    is_second = b.reshape(b.compare(deciding, b.full_like(deciding, bound), "GT"), (rows,))
    if votes_second or base.size == 2:
        return is_second, transformed(b, pair_of(b, first, second), transform)
    if transform == "LOGISTIC":
        return is_second, transformed(b, pair_of(b, b.negate(first), first), transform)
    if transform == "PROBIT":
        node.unsupported("PROBIT of one score for two classes is not defined", "use NONE or LOGISTIC")
    other = b.subtract(b.full_like(first, 1), first) if all_positive else b.negate(first)
    return is_second, pair_of(b, other, first)


@onnx_op("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    element = x.tensor_type.element
    x, ensemble = _operand(node, b, _read_version_5(node))
    aggregate, transform = node.int("aggregate_function", 1), node.int("post_transform", 0)
    if not 0 <= aggregate < len(AGGREGATES) or not 0 <= transform < len(TRANSFORMS):
        node.unsupported(
            f"aggregate_function={aggregate} or post_transform={transform} is not known",
            f"0 to {len(AGGREGATES) - 1}, and 0 to {len(TRANSFORMS) - 1}, are",
        )
    scores = ensemble.total(b, x, AGGREGATES[aggregate])
    return b.convert(transformed(b, scores, TRANSFORMS[transform]), element)


def _read_version_5(node: NodeView) -> Ensemble:
    """Inner nodes and leaves have attributes of their own; leaf k becomes row inner + k of the tables."""
    feature = np.array(node.ints("nodes_featureids"), np.int32)
    splits, modes, weights = node.tensor("nodes_splits"), node.tensor("nodes_modes"), node.tensor("leaf_weights")
    if splits is None or modes is None or weights is None:
        node.shape_error("nodes_splits, nodes_modes and leaf_weights must be given")
    inner, leaves = len(feature), len(weights)
    columns = [
        np.array(node.ints(name), np.int32)
        for name in ("nodes_falsenodeids", "nodes_falseleafs", "nodes_truenodeids", "nodes_trueleafs")
    ]
    missing = np.array(node.ints("nodes_missing_value_tracks_true", ()) or (0,) * inner, bool)
    owners = np.array(node.ints("leaf_targetids"), np.int64)
    targets = node.int("n_targets")
    if any(len(c) != inner for c in (*columns, splits, modes, missing)) or len(owners) != leaves:
        node.shape_error("the nodes_* or leaf_* attributes differ in length")
    if len(modes) and modes.max() >= len(MODES):
        node.unsupported("nodes_modes has a number that is not known", f"0 to {len(MODES) - 1} are")
    if leaves and not (0 <= owners.min() and owners.max() < targets):
        node.shape_error(f"a leaf is for a target outside of 0..{targets - 1}")
    false_ids, false_is_leaf, true_ids, true_is_leaf = columns
    links = [false_ids, false_is_leaf != 0, true_ids, true_is_leaf != 0]
    table = _Nodes(feature, splits, modes, missing, *links)
    table = table.with_membership_chains(_member_sets(node, modes))
    total = len(table.feature)
    own = np.arange(total, total + leaves, dtype=np.int32)
    children = np.stack(
        [table.false_ids + total * table.false_is_leaf, table.true_ids + total * table.true_is_leaf], axis=1
    ).astype(np.int32)
    forest = Forest(
        np.concatenate([table.feature, np.zeros(leaves, np.int32)]),
        np.concatenate([table.split, np.zeros(leaves, splits.dtype)]),
        np.array([RELATIONS[MODES[m]] for m in table.mode] + [0] * leaves, np.int32),
        np.concatenate([table.missing, np.zeros(leaves, bool)]),
        np.concatenate([children, np.stack([own, own], axis=1)]),
        np.array(node.ints("tree_roots"), np.int32),
    )
    says = np.zeros((total + leaves, targets), weights.dtype)
    says[own, owners] = weights
    has_weight = np.zeros(says.shape, bool)
    has_weight[own, owners] = True
    return Ensemble(forest, says, has_weight)


@dataclass(frozen=True)
class _Nodes:
    """The inner nodes of TreeEnsemble, one array for each attribute."""

    feature: Array
    split: Array
    mode: Array
    missing: Array
    false_ids: Array
    false_is_leaf: Array
    true_ids: Array
    true_is_leaf: Array

    def with_membership_chains(self, members: dict[int, Array]) -> "_Nodes":
        """Each node that asks for membership of a set becomes a chain of nodes that ask for one member each."""
        columns = [list(getattr(self, f.name)) for f in fields(self)]
        names = [f.name for f in fields(self)]
        at = {name: columns[k] for k, name in enumerate(names)}
        for first, values in members.items():
            links = [first, *range(len(at["mode"]), len(at["mode"]) + len(values) - 1)]
            for column in columns:
                column += [column[first]] * (len(values) - 1)
            for k, (link, value) in enumerate(zip(links, values, strict=True)):
                at["split"][link], at["mode"][link] = value, MODES.index("BRANCH_EQ")
                if k + 1 < len(links):
                    at["false_ids"][link], at["false_is_leaf"][link] = links[k + 1], False
        return _Nodes(*(np.array(c, getattr(self, n).dtype) for n, c in at.items()))


def _member_sets(node: NodeView, modes: Array) -> dict[int, Array]:
    """The set of each membership node; `membership_values` lists them in order, each ended by a NaN."""
    askers = np.flatnonzero(modes == MODES.index("BRANCH_MEMBER"))
    values = node.tensor("membership_values")
    flat = np.zeros(0) if values is None else values.reshape(-1)
    ends = np.flatnonzero(np.isnan(flat))
    sets = [part[~np.isnan(part)] for part in np.split(flat, ends + 1)]
    if len(sets) < len(askers) or any(len(s) == 0 for s in sets[: len(askers)]):
        node.shape_error("membership_values has no members for a BRANCH_MEMBER node")
    return dict(zip((int(i) for i in askers), sets, strict=False))
