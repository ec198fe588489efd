"""One linked program: what it takes, what it refuses, and many threads at once."""

import gc
import os
import threading
from typing import Any

import numpy as np
import pytest

from onnxla.errors import ArtifactError, InputError
from onnxla.runtime.executable import Executable
from onnxla.runtime.profiler import new_profile, profile_of
from onnxla.runtime.tensors import Array
from tests.runtime.hand_written import expected, scale_and_add

ROWS = 8
X = np.random.default_rng(0).standard_normal((ROWS, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def executable() -> Executable:
    return Executable(scale_and_add(ROWS))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_runs(executable: Executable, threads: int) -> None:
    (y,) = executable.run([X], threads)
    np.testing.assert_array_equal(y, expected(X, ROWS))


def test_results_are_fresh_arrays(executable: Executable) -> None:
    (first,) = executable.run([X], 1)
    before = first.copy()
    (second,) = executable.run([-X], 1)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, before)


def strided() -> Array:
    wide = np.zeros((ROWS, 32), np.float32)
    wide[:, ::2] = X
    return wide[:, ::2]


def unaligned() -> Array:
    view = np.zeros(X.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(X.shape)
    view[...] = X
    return view


class OnlyDlpack:
    def __dlpack__(self, **kwargs: Any) -> Any:
        return X.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return X.__dlpack_device__()


@pytest.mark.parametrize(
    "value",
    [strided(), np.asfortranarray(X), X[::-1][::-1], X.astype(">f4"), unaligned(), OnlyDlpack(), X.tolist()],
    ids=["strided", "fortran", "reversed", "big-endian", "unaligned", "dlpack", "list"],
)
def test_any_memory_order_gives_the_same_result(executable: Executable, value: Any) -> None:
    (y,) = executable.run([value], 1)
    np.testing.assert_array_equal(y, expected(X, ROWS))


def test_read_only_input(executable: Executable) -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(executable.run([frozen], 1)[0], expected(X, ROWS))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X.astype(np.float64), "x: dtype float64, the model takes float32"),
        (X[:-1], "x: shape [7, 16], the model takes [8, 16]"),
        (X[0], "x: shape [16], the model takes [8, 16]"),
        (np.zeros((ROWS, 16), np.int32), "x: dtype int32, the model takes float32"),
        ("text", "x: dtype <U4, the model takes float32"),
        (None, "x: dtype object, the model takes float32"),
        ([[1, 2], [3]], "x: list is not an array"),
        ([[1j] * 16] * ROWS, "x: dtype complex128, the model takes float32"),
    ],
)
def test_wrong_inputs_are_refused(executable: Executable, value: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        executable.run([value], 1)
    assert message in str(caught.value)


def test_wrong_number_of_inputs(executable: Executable) -> None:
    with pytest.raises(InputError, match="2 arrays for 1 inputs"):
        executable.run([X, X], 1)


def test_out_receives_the_result(executable: Executable) -> None:
    out = np.empty_like(X)
    (y,) = executable.run([X], 1, [out])
    assert y is out
    np.testing.assert_array_equal(out, expected(X, ROWS))


@pytest.mark.parametrize("overlap", [0, 4])
def test_out_may_be_the_input(executable: Executable, overlap: int) -> None:
    memory = np.zeros(ROWS * 16 + overlap, np.float32)
    value = memory[: ROWS * 16].reshape(ROWS, 16)
    out = memory[overlap:].reshape(ROWS, 16)
    value[...] = X
    executable.run([value], 1, [out])
    np.testing.assert_array_equal(out, expected(X, ROWS))


def test_out_may_be_strided(executable: Executable) -> None:
    out = np.zeros((ROWS, 32), np.float32)[:, ::2]
    executable.run([X], 1, [out])
    np.testing.assert_array_equal(out, expected(X, ROWS))


def test_unfit_out_is_refused_with_every_reason(executable: Executable) -> None:
    out = np.zeros((ROWS, 15))
    out.flags.writeable = False
    with pytest.raises(InputError) as caught:
        executable.run([X], 1, [out])
    assert str(caught.value).splitlines() == [
        "y: out has dtype float64, the model gives float32",
        "y: out has shape [8, 15], the model gives [8, 16]",
        "y: out is read-only",
    ]


def test_eight_threads_on_one_executable(executable: Executable) -> None:
    inputs = [X * k for k in range(8)]
    failures = []

    def work(x: Array) -> None:
        for _ in range(300):
            if not np.array_equal(executable.run([x], 3)[0], expected(x, ROWS)):
                failures.append(x)

    workers = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_several_models_at_once() -> None:
    models = {rows: Executable(scale_and_add(rows)) for rows in (1, 3, 8, 64)}
    failures = []

    def work(rows: int) -> None:
        x = np.full((rows, 16), rows, np.float32)
        for _ in range(200):
            if not np.array_equal(models[rows].run([x], 4)[0], expected(x, rows)):
                failures.append(rows)

    workers = [threading.Thread(target=work, args=(rows,)) for rows in models]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_runs_in_a_forked_child(executable: Executable) -> None:
    executable.run([X], 4)
    child = os.fork()
    if child == 0:
        same = all(np.array_equal(executable.run([X], 4)[0], expected(X, ROWS)) for _ in range(20))
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_load_and_unload_many_times() -> None:
    for rows in (1, 2, 3) * 30:
        x = np.ones((rows, 16), np.float32)
        executable = Executable(scale_and_add(rows))
        np.testing.assert_array_equal(executable.run([x], 2)[0], expected(x, rows))
        del executable
        gc.collect()


def test_a_profile_receives_the_time_of_each_step(executable: Executable) -> None:
    array = new_profile(2)
    executable.run([X], 1, profile=array)
    profile = profile_of(executable.program.steps, array)
    assert [row.rounds for row in profile.rows] == [1, 1]
    assert 0 < round(profile.seconds * 1e9) <= array[1] - array[0]


def test_empty_arrays_run() -> None:
    executable = Executable(scale_and_add(0))
    (y,) = executable.run([np.empty((0, 16), np.float32)], 4)
    assert y.shape == (0, 16)


def test_code_for_another_machine_is_refused() -> None:
    program = scale_and_add(1)
    other = "aarch64-unknown-linux-gnu" if "x86" in program.triple else "x86_64-unknown-linux-gnu"
    with pytest.raises(ArtifactError, match=f"compiled for {other}"):
        Executable(type(program)(**{**program.__dict__, "triple": other})).link()


def test_a_missing_cpu_feature_is_named() -> None:
    program = scale_and_add(1)
    with pytest.raises(ArtifactError, match="a CPU with warp-drive, which this one"):
        Executable(type(program)(**{**program.__dict__, "features": ("warp-drive",)})).link()


def test_objects_that_do_not_link_are_refused() -> None:
    program = scale_and_add(1)
    with pytest.raises(ArtifactError, match="the object code is damaged"):
        Executable(type(program)(**{**program.__dict__, "objects": (b"not an object",)})).link()
