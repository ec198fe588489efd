"""A cluster of two nodes on this machine: batches while a node is killed, and a model behind Serve."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

from onnxla.errors import ArtifactError, CompileError, InputError

ray = pytest.importorskip("ray")
from ray import serve  # noqa: E402
from ray._private import auto_init_hook, ray_constants  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402
from ray.data import ActorPoolStrategy, DataContext, from_items  # noqa: E402

from onnxla.integrations.ray import OnnxlaPredictor, deployment, share  # noqa: E402

LOOPBACK = "127.0.0.1"
SECONDS = 300
"""Nothing takes longer; a worker process of Ray takes some to start."""
RANDOM = np.random.default_rng(0)
FIRST, SECOND = RANDOM.normal(size=(16, 64)).astype(np.float32), RANDOM.normal(size=(64, 4)).astype(np.float32)
ROWS = RANDOM.normal(size=(120, 16)).astype(np.float32)


def network() -> ModelProto:
    nodes = [
        make_node("MatMul", ["x", "first"], ["h"]),
        make_node("Relu", ["h"], ["r"]),
        make_node("MatMul", ["r", "second"], ["y"]),
    ]
    weights = [numpy_helper.from_array(FIRST, "first"), numpy_helper.from_array(SECOND, "second")]
    x, y = (make_tensor_value_info(name, 1, ["batch", size]) for name, size in (("x", 16), ("y", 4)))
    graph = make_graph(nodes, "network", [x], [y], weights)
    return make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8)


def expected(x: Any) -> Any:
    return np.maximum(x @ FIRST, 0) @ SECOND


def assert_right(y: Any, x: Any) -> None:
    np.testing.assert_allclose(y, expected(x), 1e-4, 1e-4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The head, to which the driver belongs, and a node that a test may kill. Nothing listens beyond loopback."""
    auto_init_hook.enable_auto_connect = False  # threads of handles, which outlive it, would start one of their own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)  # so that the driver's own address is loopback
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # the same for workers
        patch.setenv("RAY_agent_register_timeout_ms", "120000")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]))
        node: dict[str, Any] = {"object_store_memory": 100 << 20, "node_ip_address": LOOPBACK}
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False, **node})
        made.killed = made.add_node(num_cpus=1, **node)
        try:
            ray.init(address=made.address, _node_ip_address=LOOPBACK, log_to_driver=False, logging_level="ERROR")
            DataContext.get_current().enable_progress_bars = False
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


def test_a_batch_job_ends_with_the_right_results_though_a_node_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    shared = share(network(), max_batch_size=8)

    class Watched(OnnxlaPredictor):
        """Says on which node it ran, and takes its time, so that there is a middle of the job."""

        def __call__(self, batch: Any) -> Any:
            node = ray.get_runtime_context().get_node_id()
            (tmp_path / f"{node}-{batch['id'][0]}").touch()
            time.sleep(0.1)
            return super().__call__(batch)

    dying = cluster.killed.node_id
    killed = []

    def kill() -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if len([p for p in tmp_path.iterdir() if p.name.startswith(dying)]) >= 2:
                killed.append(len(list(tmp_path.iterdir())))
                cluster.remove_node(cluster.killed, allow_graceful=False)
                return
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    rows = (
        from_items([{"x": x, "id": i} for i, x in enumerate(ROWS)], override_num_blocks=24)
        .map_batches(
            Watched,
            fn_constructor_args=(shared,),
            fn_constructor_kwargs={"outputs": {"y": "score"}, "keep": ["id"]},
            batch_size=5,
            compute=ActorPoolStrategy(size=2),
            num_cpus=1,
            scheduling_strategy="SPREAD",
        )
        .take_all()
    )
    killer.join(SECONDS)
    assert killed and killed[0] < 24, "the node was not killed in the middle of the job"
    assert sorted(row["id"] for row in rows) == list(range(len(ROWS)))
    assert {name for row in rows for name in row} == {"id", "score"}
    for row in rows:
        assert_right(row["score"], ROWS[row["id"]])


def test_workers_of_a_node_have_one_file_and_the_threads_of_their_cpus(cluster: Cluster) -> None:
    shared = share(network(), max_batch_size=8)

    @ray.remote(num_cpus=2)
    class Worker:
        def look(self) -> Any:
            model = shared.load()
            path = shared.on_this_node()
            return str(path), path.stat().st_ino, model.num_threads

    workers = [Worker.remote() for _ in range(2)]  # type: ignore[attr-defined]
    one, other = ray.get([worker.look.remote() for worker in workers], timeout=SECONDS)
    assert one == other and one[2] == 2
    for worker in workers:
        ray.kill(worker)


def test_an_artifact_for_another_cpu_is_refused_or_compiled_again(cluster: Cluster) -> None:
    other = {"target_cpu": "generic-aarch64"}
    data = network().SerializeToString()
    with pytest.raises(ArtifactError, match=r"compiled for aarch64[\s\S]*recompile=True"):
        share(data, max_batch_size=2, options=other).load(num_threads=1)
    model = share(data, max_batch_size=2, options=other, recompile=True).load(num_threads=1)
    assert_right(model.run(None, {"x": ROWS[:2]})[0], ROWS[:2])


def test_a_durable_model_is_there_until_it_is_released(cluster: Cluster) -> None:
    model = network()
    model.doc_string = "another digest"
    shared = share(model, dims={"batch": 3}, durable=True)
    assert shared.references == ()
    assert_right(shared.load(num_threads=1).run(None, {"x": ROWS[:3]})[0], ROWS[:3])
    assert bytes(shared._bytes(0)[:6]) and shared.size == len(shared._bytes(0))
    shared.release()
    with pytest.raises(ArtifactError, match="share it again"):
        shared._bytes(0)


def test_what_cannot_be_shared_says_why(cluster: Cluster, tmp_path: Path) -> None:
    summing = network()
    summing.graph.node.append(make_node("ReduceSum", ["y"], ["sum"], keepdims=0))
    summing.graph.output.append(make_tensor_value_info("sum", 1, []))
    with pytest.raises(CompileError, match="cannot be padded"):
        share(summing, max_batch_size=4)
    onnx.save(network(), tmp_path / "network.onnx")
    shared = share(str(tmp_path / "network.onnx"), max_batch_size=2)
    assert (shared.max_batch_size, shared.batch_dimension) == (2, "batch")
    path = tmp_path / "network.onnxla"
    path.write_bytes(shared.on_this_node().read_bytes())
    again = share(path)
    assert (again.digest, again.max_batch_size) == (shared.digest, 2)
    with pytest.raises(InputError, match="compiled already"):
        share(path, max_batch_size=4)
    with pytest.raises(InputError, match="come too late"):
        deployment(shared, dims={"batch": 2})


def test_the_predictor_says_what_does_not_fit(cluster: Cluster) -> None:
    shared = share(network(), max_batch_size=4)
    predictor = OnnxlaPredictor(shared, inputs={"x": "pixels"}, num_threads=1)
    for rows in (1, 3, 4, 11):  # fewer and more than there is code for
        result = predictor({"pixels": ROWS[:rows], "id": np.arange(rows)})
        assert list(result) == ["pixels", "id", "y"]
        assert_right(result["y"], ROWS[:rows])
    with pytest.raises(InputError, match="no column pixels; there are x"):
        predictor({"x": ROWS[:2]})
    with pytest.raises(InputError, match="the model has no z; its inputs are x, its outputs y"):
        OnnxlaPredictor(shared, outputs={"z": "z"}, num_threads=1)
    scalar = network()
    scalar.graph.node.append(make_node("ReduceSum", ["y"], ["sum"], keepdims=0))
    scalar.graph.output.append(make_tensor_value_info("sum", 1, []))
    with pytest.raises(InputError, match=r"output sum has shape \[\], not a row for each of 2"):
        OnnxlaPredictor(share(scalar, dims={"batch": 2}), num_threads=1)({"x": ROWS[:2]})


@pytest.fixture(scope="module")
def served(cluster: Cluster) -> Iterator[tuple[Any, str]]:
    """A handle, and the proxy's address."""
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        address = f"{LOOPBACK}:{free.getsockname()[1]}"
    serve.start(proxy_location="HeadOnly", http_options={"host": LOOPBACK, "port": int(address.rpartition(":")[2])})
    options = {"logging_config": {"enable_access_log": False}}
    application = deployment(network(), name="network", max_batch_size=8, batch_delay=0.01, serve_options=options)
    handle = serve.run(application, name="network", route_prefix="/models")
    yield handle, address
    serve.shutdown()


def test_requests_that_come_together_run_together_and_are_taken_apart(served: tuple[Any, str]) -> None:
    handle, _ = served
    before = handle.statistics.remote().result(timeout_s=SECONDS)
    parts = [ROWS[i : i + 1 + i % 3] for i in range(40)]
    pending = [handle.infer.remote({"x": part}) for part in parts]
    for part, answer in zip(parts, pending, strict=True):
        assert_right(answer.result(timeout_s=SECONDS)["y"], part)
    after = handle.statistics.remote().result(timeout_s=SECONDS)
    assert after["requests"] - before["requests"] == len(parts)
    assert after["rows"] - before["rows"] == sum(map(len, parts))
    assert after["runs"] - before["runs"] < len(parts)


def test_errors_of_a_handle_are_typed(served: tuple[Any, str]) -> None:
    from onnxla.serving.errors import InvalidRequestError

    handle, _ = served
    for wrong in ({"q": ROWS[:1]}, {"x": ROWS[:1].astype(np.float64)}, {"x": ROWS[:1, :3]}, {"x": ROWS[:9]}):
        with pytest.raises(InvalidRequestError):
            handle.infer.remote(wrong).result(timeout_s=SECONDS)


def test_the_open_inference_protocol_below_the_prefix(served: tuple[Any, str]) -> None:
    http = pytest.importorskip("tritonclient.http")
    _, address = served
    client = http.InferenceServerClient(f"{address}/models")
    assert client.is_server_ready() and client.is_model_ready("network")
    assert client.get_model_metadata("network")["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 16]}]
    for binary in (True, False):
        x = http.InferInput("x", [3, 16], "FP32")
        x.set_data_from_numpy(ROWS[:3], binary_data=binary)
        outputs = [http.InferRequestedOutput("y", binary_data=binary)]
        assert_right(client.infer("network", [x], outputs=outputs).as_numpy("y"), ROWS[:3])
    with pytest.raises(Exception, match="no model"):
        client.get_model_metadata("other")
    with pytest.raises(Exception, match="admin"):
        client.load_model("network")


class Asking:
    """Threads that ask a handle for random rows and compare the answers, from `with` to its end."""

    def __init__(self, handle: Any, threads: int) -> None:
        self.answers = 0
        self._infer = handle.infer  # made once: handles that threads make at the same time tell of the last one's queue
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(threads)
        self._asking = [self._pool.submit(self._ask, seed) for seed in range(threads)]

    def _ask(self, seed: int) -> int:
        """The number of answers, all of which were right."""
        random, answers = np.random.default_rng(seed), 0
        while not self._stop.is_set():
            begin = random.integers(len(ROWS) - 3)
            x = ROWS[begin : begin + random.integers(1, 4)]
            assert_right(self._infer.remote({"x": x}).result(timeout_s=SECONDS)["y"], x)
            answers += 1
        return answers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._pool.shutdown()
        self.answers = sum(asking.result() for asking in self._asking)


def replicas(name: str) -> dict[str, int]:
    """How many there are in each state."""
    states = serve.status().applications[name].deployments["network"].replica_states
    return {str(getattr(state, "value", state)): count for state, count in states.items() if count}


def until_replicas_are(name: str, wanted: dict[str, int]) -> None:
    end = time.monotonic() + SECONDS
    while replicas(name) != wanted:
        assert time.monotonic() < end, replicas(name)
        time.sleep(0.1)


def answered_by_both(handle: Any) -> int:
    """The requests that two replicas have answered, each of them some."""
    found: dict[str, int] = {}
    end = time.monotonic() + SECONDS
    while len(found) < 2 or not all(found.values()):
        assert time.monotonic() < end, found
        counts = [handle.statistics.remote() for _ in range(20)]
        found |= {one["replica"]: one["requests"] for one in (count.result(timeout_s=SECONDS) for count in counts)}
    return sum(found.values())


def test_replicas_come_and_go_with_the_queue_and_lose_no_request(served: tuple[Any, str]) -> None:
    shared = share(network(), max_batch_size=8, durable=True)
    scaling = {
        "min_replicas": 1,
        "max_replicas": 2,
        "target_ongoing_requests": 4,
        "upscale_delay_s": 0.2,
        "downscale_delay_s": 1,
        "look_back_period_s": 1,
        "metrics_interval_s": 0.2,
    }
    scaled = deployment(shared, name="network", autoscaling_config=scaling)
    handle = serve.run(scaled, name="scaled", route_prefix=None)
    assert replicas("scaled") == {"RUNNING": 1}
    with Asking(handle, 24) as many:
        until_replicas_are("scaled", {"RUNNING": 2})
        answered_by_both(handle)
    assert answered_by_both(handle) == many.answers
    with Asking(handle, 1) as few:
        until_replicas_are("scaled", {"RUNNING": 1})
    assert few.answers > 0
    with Asking(handle, 4) as some:
        serve.run(deployment(shared, name="network", num_replicas=2), name="scaled", route_prefix=None)
        until_replicas_are("scaled", {"RUNNING": 2})
        answered_by_both(handle)
    assert some.answers > 0
    handle.shutdown()
    serve.delete("scaled")
    shared.release()
