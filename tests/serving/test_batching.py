"""Requests together in one run: which are, in what sizes, and that each gets what is its own."""

import asyncio
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import onnxla
from onnxla.runtime.padding import OutputRows
from onnxla.runtime.tensors import Array
from onnxla.serving.engine import ServingEngine
from onnxla.serving.errors import InvalidRequestError
from onnxla.serving.rows import RowsPlan, join, split
from tests.compiler.test_padding import feeds, two_outputs
from tests.serving.repositories import (
    Gate,
    ask,
    batched_artifact,
    dense,
    in_loop,
    mixing,
    put,
    put_artifact,
    random_rows,
    scaled,
    serving,
)

BATCHED = "max_batch_size: 4 dynamic_batching {}"


def batches(engine: ServingEngine, name: str) -> dict[int, int]:
    """Rows of runs to the number of runs."""
    (counts,) = engine.statistics(name)
    return {rows: runs.count for rows, runs in counts.batches.items()}


async def ask_behind(engine: ServingEngine, name: str, inputs: list[dict[str, Any]]) -> list[dict[str, Array]]:
    """The answers to requests that wait in the queue, all of them, before any of them runs; one row ran before."""
    gate = Gate(engine, name)
    first = {k: v[:1] if v.ndim else v for k, v in inputs[0].items()}
    running = asyncio.create_task(ask(engine, name, first))
    await asyncio.sleep(0)
    tasks = [asyncio.create_task(ask(engine, name, one)) for one in inputs]
    await asyncio.sleep(0)
    gate.open()
    await running
    return list(await asyncio.gather(*tasks))


def test_what_waits_runs_together_and_is_split_exactly(tmp_path: Path) -> None:
    artifact = batched_artifact(tmp_path / "m.onnxla")
    put_artifact(tmp_path / "models", "m", artifact)
    (tmp_path / "models" / "m" / "config.pbtxt").write_text(BATCHED)
    model = onnxla.load_compiled(artifact)

    async def work() -> None:
        async with serving(tmp_path / "models", inline_seconds=0.0) as engine:
            xs = [random_rows(rows, seed=k) for k, rows in enumerate((1, 2, 1, 3, 2, 2))]
            answers = await ask_behind(engine, "m", [{"x": x} for x in xs])
            assert batches(engine, "m") == {1: 1, 4: 2, 3: 1}
            for group in ((0, 1, 2), (3,), (4, 5)):
                together = np.concatenate([xs[k] for k in group])
                if len(together) == 3:
                    together = np.concatenate([together, together[-1:]])
                whole_y, whole_s = model.run(None, {"x": together})
                place = 0
                for k in group:
                    rows = slice(place, place + len(xs[k]))
                    np.testing.assert_array_equal(answers[k]["y"], whole_y[rows])
                    np.testing.assert_array_equal(answers[k]["s"], whole_s[rows])
                    assert answers[k]["y"].flags.c_contiguous
                    place += len(xs[k])

    in_loop(work)


def test_rows_in_the_middle_are_split_too(tmp_path: Path) -> None:
    put(tmp_path, "m", two_outputs(), config="max_batch_size: 6 dynamic_batching {}")
    reference = onnxruntime.InferenceSession(two_outputs().SerializeToString())

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            given = [feeds(rows, seed) for seed, rows in enumerate((1, 2, 2, 3, 1))]
            answers = await ask_behind(engine, "m", given)
            assert batches(engine, "m") == {1: 1, 5: 1, 4: 1}
            for one, answer in zip(given, answers, strict=True):
                for ours, theirs in zip(answer.values(), reference.run(None, one), strict=True):
                    assert ours.shape == theirs.shape and ours.flags.c_contiguous
                    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)

    in_loop(work)


def test_other_shapes_and_other_shared_inputs_are_never_mixed(tmp_path: Path) -> None:
    put(tmp_path, "m", scaled(), config=BATCHED + ' parameters { key: "dims" value { string_value: "columns=4,5" } }')

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            k = [np.full((), n, np.float32) for n in range(2)]
            given = [{"x": random_rows(1, 4 + n % 2, seed=n), "k": k[n // 2 % 2]} for n in range(16)]
            answers = await ask_behind(engine, "m", given)
            assert batches(engine, "m") == {1: 1, 4: 4}
            for one, answer in zip(given, answers, strict=True):
                np.testing.assert_allclose(answer["y"], np.multiply(one["x"], one["k"]) + 1, rtol=1e-5, atol=1e-6)

    in_loop(work)


def test_one_request_alone_waits_for_nobody_without_a_delay(tmp_path: Path) -> None:
    put_artifact(tmp_path, "m", batched_artifact(tmp_path / "m.onnxla"))
    (tmp_path / "m" / "config.pbtxt").write_text(BATCHED)

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            for _ in range(3):
                await ask(engine, "m", {"x": random_rows(1)})
            assert batches(engine, "m") == {1: 3}

    in_loop(work)


def test_a_delay_waits_for_a_preferred_size_and_no_longer(tmp_path: Path) -> None:
    put_artifact(tmp_path, "m", batched_artifact(tmp_path / "m.onnxla"))
    config = "max_batch_size: 4 dynamic_batching { preferred_batch_size: [2] max_queue_delay_microseconds: %d }"
    (tmp_path / "m" / "config.pbtxt").write_text(config % 50_000_000)

    async def work(until: str) -> None:
        async with serving(tmp_path) as engine:
            one = asyncio.create_task(ask(engine, "m", {"x": random_rows(1)}))
            await asyncio.sleep(0.01)
            if until == "preferred":
                assert not one.done()
                await ask(engine, "m", {"x": random_rows(1)})
                await one
                assert batches(engine, "m") == {2: 1}
                await ask(engine, "m", {"x": random_rows(4)})
                three = [asyncio.create_task(ask(engine, "m", {"x": random_rows(1)})) for _ in range(3)]
                await asyncio.wait(three, return_when=asyncio.FIRST_COMPLETED)
                assert batches(engine, "m") == {2: 2, 4: 1}
                for task in three:
                    task.cancel()
            else:
                await one
                assert batches(engine, "m") == {1: 1}

    in_loop(lambda: work("preferred"))
    (tmp_path / "m" / "config.pbtxt").write_text(config % 20_000)
    in_loop(lambda: work("time is over"))


def test_rows_that_depend_on_one_another_are_not_batched_unless_the_configuration_insists(tmp_path: Path) -> None:
    insisting = BATCHED + ' parameters { key: "assume_independent_rows" value { string_value: "true" } }'
    put(tmp_path, "refused", mixing(), config=BATCHED)
    put(tmp_path, "insisted", mixing(), config=insisting)
    put(tmp_path, "plain", mixing())

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            states = {line.name: line for line in engine.index()}
            assert states["refused"].state == "UNAVAILABLE"
            assert "it combines all rows" in states["refused"].reason
            assert "assume_independent_rows" in states["refused"].reason
            x = random_rows(2, 2)
            expected = np.exp(x) / np.exp(x).sum(0)
            for name in ("plain", "insisted"):
                np.testing.assert_allclose((await ask(engine, name, {"x": x}))["y"], expected, rtol=1e-5)

    in_loop(work)


def test_an_artifact_without_the_proof_is_not_batched(tmp_path: Path) -> None:
    onnxla.compile(dense(), dims={"batch": [1, 2]}).save(tmp_path / "m.onnxla")
    put_artifact(tmp_path / "models", "m", tmp_path / "m.onnxla")
    (tmp_path / "models" / "m" / "config.pbtxt").write_text("max_batch_size: 2 dynamic_batching {}")

    async def work() -> None:
        async with serving(tmp_path / "models") as engine:
            (line,) = engine.index()
            assert "an artifact is compiled with pad_to_bucket" in line.reason

    in_loop(work)


@pytest.mark.parametrize(
    ("rows", "config", "said"),
    [
        (3, BATCHED, "the first dimensions of the inputs have a size, or no name"),
        ("batch", BATCHED + ' parameters { key: "batch_dimension" value { string_value: "n" } }', "no input has"),
        ("batch", BATCHED + ' parameters { key: "dims" value { string_value: "n=3" } }', "no open dimension n"),
    ],
)
def test_configurations_that_do_not_fit_the_model(tmp_path: Path, rows: Any, config: str, said: str) -> None:
    put(tmp_path, "m", dense(rows=rows), config=config)

    async def work() -> None:
        async with serving(tmp_path) as engine:
            assert said in engine.index()[0].reason

    in_loop(work)


def test_one_bad_request_in_a_batch_harms_no_other(tmp_path: Path) -> None:
    """Strings that are no text are found when the batch runs."""
    nodes = [
        helper.make_node(
            "LabelEncoder",
            ["x"],
            ["y"],
            domain="ai.onnx.ml",
            keys_strings=["one", "two"],
            values_int64s=[1, 2],
            default_int64=-1,
        )
    ]
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info("x", TensorProto.STRING, ["batch"])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, ["batch"])],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    put(tmp_path, "m", helper.make_model(graph, opset_imports=opsets, ir_version=9), config=BATCHED)

    async def work() -> None:
        async with serving(tmp_path, inline_seconds=0.0) as engine:
            gate = Gate(engine, "m")
            texts: list[Any] = [b"one", b"two", b"\xff", b"x"]
            tasks = [asyncio.create_task(ask(engine, "m", {"x": np.array([t], object)})) for t in [b"one", *texts]]
            await asyncio.sleep(0)
            gate.open()
            answers = await asyncio.gather(*tasks[1:], return_exceptions=True)
            assert isinstance(answers[2], InvalidRequestError)
            assert [int(a["y"][0]) for a in answers if isinstance(a, dict)] == [1, 2, -1]

    in_loop(work)


@pytest.mark.parametrize("seed", range(3))
def test_random_clients_get_what_run_gives(tmp_path: Path, seed: int) -> None:
    """Odd shapes, cancelled and late requests, in any order, on several instances."""
    config = "max_batch_size: 5 dynamic_batching { max_queue_delay_microseconds: 300 } instance_group { count: 2 }"
    put(tmp_path, "m", scaled(), config=config + ' parameters { key: "dims" value { string_value: "columns=3,4" } }')

    async def work() -> None:
        dice = random.Random(seed)
        async with serving(tmp_path, inline_seconds=dice.choice([0.0, 1.0])) as engine:

            async def client(number: int) -> int:
                mine, good = random.Random(f"{seed} {number}"), 0
                for turn in range(12):
                    x = random_rows(mine.randint(1, 5), mine.choice([3, 4]), seed=number * 100 + turn)
                    k = np.full((), mine.randint(1, 2), np.float32)
                    task = asyncio.create_task(ask(engine, "m", {"x": x, "k": k}))
                    if mine.random() < 0.2:
                        await asyncio.sleep(mine.random() * 1e-3)
                        task.cancel()
                    try:
                        np.testing.assert_allclose((await task)["y"], x * k + 1, rtol=1e-5, atol=1e-6)
                        good += 1
                    except asyncio.CancelledError:
                        pass
                return good

            good = await asyncio.gather(*(client(n) for n in range(20)))
            while engine.statistics("m")[0].running:  # an instance rests a moment after the last answer
                await asyncio.sleep(1e-3)
            (counts,) = engine.statistics("m")
            assert counts.success.count >= sum(good) > 0
            assert counts.queued == counts.running == 0
            assert set(engine.measurements().models[0].failures) <= {"Cancelled"}

    in_loop(work)


def test_join_and_split_are_inverse() -> None:
    dice = np.random.default_rng(0)
    plan = RowsPlan(
        (1, None, 0),
        (OutputRows(1, 1, 1), OutputRows(0, 1, 2), OutputRows(1, 3, 2), None),
        ((1, 3), (4, 7)),
        True,
    )
    assert [plan.size_for(n) for n in (1, 3, 4, 7, 8)] == [3, 3, 7, 7, None]
    for counts in ([1], [2, 1], [3], [1, 2, 3], [4, 3]):
        size = plan.size_for(sum(counts))
        assert size is not None
        shared = dice.random(2)
        parts = [[dice.random((2, n, 3)), shared, dice.random((n,))] for n in counts]
        joined = join(plan, parts, size)
        assert [a.shape for a in joined] == [(2, size, 3), (2,), (size,)]
        place = 0
        for part, n in zip(parts, counts, strict=True):
            np.testing.assert_array_equal(joined[0][:, place : place + n], part[0])
            np.testing.assert_array_equal(joined[2][place : place + n], part[2])
            place += n
        rows = np.arange(size)
        results = [
            np.broadcast_to(rows[None, :, None], (2, size, 3)).copy(),
            np.repeat(rows, 2),
            np.broadcast_to(np.tile(np.repeat(rows, 2), 3), (2, 6 * size)).copy(),
            np.arange(4),
        ]
        place = 0
        for cut, n in zip(split(plan, results, counts, size), counts, strict=True):
            mine = np.arange(place, place + n)
            np.testing.assert_array_equal(cut[0], np.broadcast_to(mine[None, :, None], (2, n, 3)))
            np.testing.assert_array_equal(cut[1], np.repeat(mine, 2))
            np.testing.assert_array_equal(cut[2], np.broadcast_to(np.tile(np.repeat(mine, 2), 3), (2, 6 * n)))
            np.testing.assert_array_equal(cut[3], np.arange(4))
            assert all(a.flags.c_contiguous for a in cut)
            place += n


def test_models_of_the_tests_are_valid() -> None:
    for model in (dense(), scaled(), mixing(), two_outputs()):
        onnx.checker.check_model(model)
