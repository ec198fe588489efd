"""One thread for each of a number of positions: the frame around most GPU kernels."""

from collections.abc import Iterator
from contextlib import contextmanager

from onnxla.codegen.kernels.cluster import Frame
from onnxla.codegen.kernels.index import Expr

THREADS = 256


def blocks_for(total: int) -> int:
    """Blocks of THREADS threads that hold `total` threads."""
    return -(-total // THREADS)


@contextmanager
def each_thread(frame: Frame, total: int) -> Iterator[Expr]:
    """Inside, code for one of `total` threads; the yielded expression is its number. `frame` has the blocks for it."""
    e, b = frame.emitter, frame.b
    b.kernel.threads = THREADS
    at = b.add(b.mul(b.task, b.const(THREADS)), b.thread())
    with b.if_(b.compare("LT", at, b.const(total))) as branch:
        with branch.then(), e.scope():
            yield e.bind("position", at, 0, total - 1)
        with branch.otherwise():
            pass
