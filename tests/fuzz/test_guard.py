"""The guards themselves: what they are for must crash, or be seen."""

import random
import subprocess
import sys

import pytest

from tests.fuzz.generator import generate
from tests.fuzz.graph import Graph, Value, onnx_type
from tests.fuzz.guard import Overrun, guard_pages, run_guarded
from tests.fuzz.witnesses import compiled, interpreted

_TOUCH = """
import ctypes
from tests.fuzz.graph import Graph, Value, onnx_type
from tests.fuzz.guard import guarded
memory = guarded(100)
ctypes.memset(memory.ctypes.data + {offset}, 0, 1)
"""


@pytest.mark.parametrize("offset, crashes", [(99, False), (100, True), (-4097, True)])
def test_a_byte_outside_crashes(offset: int, crashes: bool) -> None:
    run = subprocess.run([sys.executable, "-c", _TOUCH.format(offset=offset)], capture_output=True)
    assert (run.returncode != 0) == crashes


def test_a_byte_behind_an_arena_buffer_is_seen() -> None:
    with guard_pages() as arena:
        arena.buffers = [(4096 + 4032, 60)]
        memory = arena.make(3 * 4096)
        arena.check()
        memory[2 * 4096 - 1] = 0
        with pytest.raises(Overrun):
            arena.check()


def test_guarded_results_are_those_of_the_plain_run() -> None:
    case = generate(3)
    for plain, guarded in zip(compiled(case), run_guarded(case), strict=True):
        assert plain.tobytes() == guarded.tobytes()


@pytest.mark.parametrize("size", [1, 9, 17, 33])
def test_narrowed_tails_end_where_their_tensors_end(size: int) -> None:
    """One element for the last vector: LLVM once stored it at the width it came from."""
    graph = Graph(random.Random(0))
    for source in ("int64", "int32", "float32"):
        x = graph.leaf(source, (size,), constant=False)
        for target in ("int32", "int16", "int8", "float16", "bfloat16"):
            graph.node("Cast", [x], Value("", target, x.shape), to=onnx_type(target))
    case = graph.case("tails")
    for result, expected in zip(run_guarded(case), interpreted(case), strict=True):
        assert result.tobytes() == expected.tobytes()
