"""Compiling takes little more memory than the model itself: no weight is in it twice, and none is while it is saved."""

import mmap
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from onnxla.codegen.kernels.register_tile import pack_panels
from onnxla.runtime.residency import let_go

PROGRAM = """
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)
size, count = 2048, 6
weights = [numpy_helper.from_array(random.random((size, size), np.float32), f"w{k}") for k in range(count)]
nodes = [helper.make_node("MatMul", ["x" if k == 0 else f"h{k}", f"w{k}"], [f"h{k + 1}"]) for k in range(count)]
info = helper.make_tensor_value_info
graph = helper.make_graph(
    nodes, "g", [info("x", TensorProto.FLOAT, [1, size])], [info(f"h{count}", TensorProto.FLOAT, [1, size])], weights
)
path = sys.argv[1] + "/m.onnx"
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
print(count * size * size * 4)
"""
COMPILE = """
import sys
import onnxla, onnxla.api
from onnxla.watch import peak_memory
from tests.cli.command import DIGITS

onnxla.compile(DIGITS, dims={"batch": 1}).save(sys.argv[1] + "/d.onnxla")  # all is imported, LLVM is awake
before = peak_memory()
onnxla.compile(sys.argv[1] + "/m.onnx", options={"cache_dir": sys.argv[1] + "/cache"}).save(sys.argv[1] + "/m.onnxla")
print(peak_memory() - before)
"""


def printed(program: str, folder: Path) -> int:
    run = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    return int(run.stdout)


def test_compiling_and_saving_take_half_of_the_model_more(tmp_path: Path) -> None:
    """Into the cache too, while the model is still there."""
    model = printed(PROGRAM, tmp_path)
    assert printed(COMPILE, tmp_path) < 1.5 * model


def test_packing_takes_what_it_gives() -> None:
    right = np.zeros((1, 4000, 1000), np.float32).transpose(0, 2, 1)
    tracemalloc.start()
    packed = pack_panels(right, 16, np.dtype(np.float32))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.1 * packed.nbytes


def test_pages_that_are_let_go_keep_their_bytes(tmp_path: Path) -> None:
    content = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8).tobytes()
    (tmp_path / "file").write_bytes(content)
    with open(tmp_path / "file", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.frombuffer(mapped, np.uint8)
    for part in (array.data, array[5000:90000].data, array[7:9].data, array[4096:8192].data):
        let_go(part)
    assert array.tobytes() == content


@pytest.mark.parametrize("kind", ["bytes", "array", "anonymous", "private"])
def test_memory_that_is_no_file_is_never_let_go(kind: str, tmp_path: Path) -> None:
    """Dropping those pages would lose what was written to them."""
    content = bytes(range(256)) * 64
    if kind == "bytes":
        memory = memoryview(content)
    elif kind == "array":
        memory = np.frombuffer(content, np.uint8).copy().data
    elif kind == "anonymous":
        block = mmap.mmap(-1, len(content))
        block[:] = content
        memory = np.frombuffer(block, np.uint8).data
    else:
        (tmp_path / "file").write_bytes(bytes(len(content)))
        with open(tmp_path / "file", "r+b") as file:
            block = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        block[:] = content
        memory = np.frombuffer(block, np.uint8).data
    let_go(memory)
    assert bytes(memory) == content
