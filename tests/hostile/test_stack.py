"""Threads with small stacks run models too, each in a process of its own: an overflow would end it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxla
from onnxla.runtime import thread_pool, thread_pool_code
from onnxla.runtime.thread_stack import has_large_stack

_RUN = """
import sys, threading
import numpy as np
import onnxla

model = onnxla.load_compiled(sys.argv[1], num_threads=int(sys.argv[3]))
x = np.load(sys.argv[2])
found = []
threading.stack_size(64 << 10)
thread = threading.Thread(target=lambda: found.append(model(x)))
thread.start()
thread.join()
np.testing.assert_array_equal(found[0], model(x))
"""


def convolution_and_softmax() -> bytes:
    """A kernel with a megabyte of scratch, and one with a quarter."""
    weights = np.random.default_rng(0).normal(size=(64, 64, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["c", "rows"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"]),
    ]
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.array([4, -1]), "rows")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in _ENDS]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
    content: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString()
    return content


_ENDS = (("x", [1, 64, 56, 56]), ("y", [4, 16 * 56 * 56]))


@pytest.mark.parametrize("threads, limit", [(1, None), (2, "128")])
def test_a_thread_with_a_small_stack_runs_a_model(tmp_path: Path, threads: int, limit: str | None) -> None:
    """Also where the system gives no thread more (`ulimit -s`)."""
    onnxla.compile(convolution_and_softmax()).save(tmp_path / "model.onnxla")
    np.save(tmp_path / "x.npy", np.random.default_rng(1).normal(size=_ENDS[0][1]).astype(np.float32))
    command = [sys.executable, "-c", _RUN, str(tmp_path / "model.onnxla"), str(tmp_path / "x.npy"), str(threads)]
    if limit is not None:
        command = ["sh", "-c", f'ulimit -s {limit}; exec "$@"', "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_this_thread_has_a_large_stack() -> None:
    assert has_large_stack()
    assert thread_pool.STACK_BYTES == thread_pool_code.STACK_BYTES
