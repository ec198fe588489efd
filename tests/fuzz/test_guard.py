"""The guards themselves: what they are for must crash, or be seen."""

import random
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.fuzz.generator import generate
from tests.fuzz.graph import Graph, Value, onnx_type
from tests.fuzz.guard import Overrun, guard_pages, run_guarded
from tests.fuzz.witnesses import compare, compiled, interpreted

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
    results = compiled(case)
    for plain, guarded in zip(results, run_guarded(case, results), strict=True):
        assert plain.tobytes() == guarded.tobytes()


@pytest.mark.parametrize("columns", [1, 9, 17, 33])
@pytest.mark.parametrize("kind", ["bfloat16", "float16", "int8", "int16"])
def test_narrowed_results_of_products_end_where_their_tensors_end(kind: str, columns: int) -> None:
    """With one column for the last vector, LLVM once stored it at the width it was narrowed from."""
    graph = Graph(random.Random(0))
    if kind.startswith("int"):
        x, y = graph.leaf("uint8", (5, 8), constant=False), graph.leaf("int8", (8, columns))
        total = graph.node("MatMulInteger", [x, y], Value("", "int32", (5, columns)))
        graph.node("Cast", [total], replace(total, dtype=kind), to=onnx_type(kind))
    else:
        x, y = graph.leaf(kind, (5, 8), constant=False), graph.leaf(kind, (8, columns))
        graph.node("MatMul", [x, y], Value("", kind, (5, columns), 32, 0.2))
    case = graph.case("tails")
    expected = interpreted(case)
    compare(case, run_guarded(case, expected), expected, "interpreter")
