"""Clusters of random graphs: in an order, convex, and computing what onnxruntime does."""

import random

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import onnxla
from onnxla.config import CompileOptions, Limits
from onnxla.fallback.clusters import SMALLEST_BYTES
from onnxla.fallback.planning import Partition, partition
from onnxla.frontends.onnx.model_file import read_model
from tests.fallback.models import model_of, node, onnxruntime_results, require_equal

SIDE = 160  # one value is larger than SMALLEST_BYTES


def random_model(seed: int, count: int = 24) -> ModelProto:
    """Sums, products and hashes, of which onnxla does not know the last; every value that nobody reads is an output."""
    rng = random.Random(seed)
    values = ["x", "y"]
    unread = set(values)
    nodes = []
    for k in range(count):
        kind = rng.choice(["Add", "Mul", "Neg", "MurmurHash3"])
        inputs = [rng.choice(values[-6:]) for _ in range(2 if kind in ("Add", "Mul") else 1)]
        if kind == "MurmurHash3":
            nodes.append(node(kind, inputs, [f"v{k}"], domain="com.microsoft", positive=0))
        else:
            nodes.append(node(kind, inputs, [f"v{k}"]))
        values.append(f"v{k}")
        unread = (unread - set(inputs)) | {f"v{k}"}
    outputs = {name: TensorProto.INT32 for name in sorted(unread - {"x", "y"})}
    return model_of(nodes, {name: (TensorProto.INT32, [SIDE, SIDE]) for name in ("x", "y")}, outputs, {})


def cut(model: ModelProto) -> Partition:
    return partition(read_model(model), CompileOptions(), Limits(), {}, {}, {}, None)


@pytest.mark.parametrize("seed", range(40))
def test_clusters_are_convex(seed: int) -> None:
    """Whoever reads a value runs in the same cluster as its maker, or in a later one; hashes are in onnxruntime."""
    found = cut(random_model(seed))
    place = {k: number for number, cluster in enumerate(found.clusters) for k in cluster.nodes}
    assert place.keys() == found.wiring.nodes.keys()
    for k, names in found.wiring.reads.items():
        makers = [found.wiring.maker[name] for name in names if name in found.wiring.maker]
        assert all(place[maker] <= place[k] for maker in makers)
        assert found.clusters[place[k]].compiled == (found.wiring.nodes[k].op_type != "MurmurHash3")
    kinds = [cluster.compiled for cluster in found.clusters]
    assert all(one != other for one, other in zip(kinds, kinds[1:], strict=False))


@pytest.mark.parametrize("seed", range(4))
def test_clusters_compute_the_model(seed: int) -> None:
    model = random_model(seed, 12)
    rng = np.random.default_rng(seed)
    feeds = {name: rng.integers(-99, 99, (SIDE, SIDE), np.int32) for name in ("x", "y")}
    compiled = onnxla.compile(model, fallback="onnxruntime")
    require_equal(compiled.run(None, feeds), onnxruntime_results(model, feeds))


def test_no_cluster_is_split_by_its_size_alone() -> None:
    """A large piece stays compiled beside a small one, which goes."""
    nodes = [
        node("Add", ["x", "x"], ["large"], name="large"),
        node("Slice", ["x", "zero", "one"], ["row"], name="row"),
        node("Neg", ["row"], ["small"], name="small"),
        node("MurmurHash3", ["large"], ["a"], domain="com.microsoft", positive=0, name="hash"),
        node("MurmurHash3", ["small"], ["b"], domain="com.microsoft", positive=0, name="hash_row"),
    ]
    held = {"zero": np.array([0]), "one": np.array([1])}
    shape = {"x": (TensorProto.INT32, [SIDE, SIDE])}
    found = cut(model_of(nodes, shape, {"a": TensorProto.INT32, "b": TensorProto.INT32}, held))
    assert SIDE * SIDE * 4 >= SMALLEST_BYTES
    assert [(c.compiled, c.nodes) for c in found.clusters] == [(True, (0,)), (False, (1, 2, 3, 4))]
