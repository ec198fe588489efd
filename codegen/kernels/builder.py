"""Build kernels: parameters and memory, work of a GPU's threads, loops and branches.

What a kernel computes with is in `arithmetic.py`, where each operation is placed in `placement.py`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from onnxla.codegen.kernels.arithmetic import Arithmetic
from onnxla.codegen.kernels.ir import INDEX, Block, Buffer, For, If, Kernel, KernelType, Value
from onnxla.errors import InternalError
from onnxla.hlo.types import U32, ElementType


class KernelBuilder(Arithmetic):
    """Builds one kernel. Parameters first, then the body, then `finish`."""

    def __init__(self, name: str, tasks: int = 1, looks_up: bool = False) -> None:
        """`looks_up` says that the target has `lookup`."""
        self.looks_up = looks_up
        self.kernel = Kernel(name, [], tasks, Block([Value("task", KernelType(INDEX))]))
        super().__init__(self.kernel.body)

    @property
    def task(self) -> Value:
        return self.kernel.task

    def parameter(self, name: str, element: ElementType, size: int, role: str, alignment: int = 0) -> Buffer:
        buffer = Buffer(name, element, size, role, alignment)
        self.kernel.parameters.append(buffer)
        return buffer

    def scratch(self, name: str, element: ElementType, size: int) -> Buffer:
        """Memory on the stack of the running task, 64-byte aligned, uninitialised."""
        buffer = Buffer(f"{name}{len(self.kernel.scratch)}", element, size, "scratch", 64)
        self.kernel.scratch.append(buffer)
        return buffer

    def shared(self, name: str, element: ElementType, size: int, alignment: int = 0) -> Buffer:
        """Memory that the threads of a GPU block share."""
        buffer = Buffer(f"{name}{len(self.kernel.scratch)}", element, size, "shared", alignment)
        self.kernel.scratch.append(buffer)
        return buffer

    def thread(self) -> Value:
        """The number of the running thread in its block, an INDEX."""
        return self._pure("thread", KernelType(INDEX), ())

    def shuffle_xor(self, x: Value, distance: int) -> Value:
        """The value that the thread of the same warp has whose number differs in the bit `distance`.

        All threads of the warp must be here."""
        value = Value("shuffle_xor", x.type, (x,), (distance,), self.level)
        self._blocks[-1].ops.append(value)
        return value

    def barrier(self) -> None:
        """Wait until every thread of the block is here and its writes to shared memory are seen."""
        self._effect("barrier", (), ())

    def copy_async(self, shared: Buffer, index: Value, source: Buffer, at: Value, count: int, condition: Value) -> None:
        """Start to copy `count` elements, 4, 8 or 16 bytes, from memory to shared memory; zeros where `condition` is
        false. Both places are multiples of as many bytes. They are there after `wait_for_copies`."""
        self._effect("copy_async", (index, at, condition), (shared, source, count))

    def wait_for_copies(self) -> None:
        """Wait until what this thread asked to be copied is there; other threads see it after a barrier."""
        self._effect("wait_for_copies", (), ())

    def load_matrix(self, shared: Buffer, index: Value, transposed: bool = False) -> Value:
        """Four tiles of 8 rows of 16 bytes, spread over a warp as `mma` wants them (U32x4, a tile in each lane).

        Thread 8 t + r says where row r of tile t starts, a multiple of 16 bytes. Thread 4 r + c gets the words c of the
        rows r; of 16-bit elements with `transposed`, elements r of rows 2 c and 2 c + 1. The whole warp must be here.
        """
        value = Value("load_matrix", KernelType(U32, 4), (index,), (shared, transposed), self.level)
        self._blocks[-1].ops.append(value)
        return value

    def round_to_tf32(self, x: Value) -> Value:
        """The bits of an f32 (U32) rounded to the 10 bits of mantissa that `mma` of `tf32` reads, ties away from 0."""
        return self._pure("round_to_tf32", x.type, (x,))

    def mma(self, a: Value, b: tuple[Value, Value], total: Value, kind: str) -> Value:
        """`total` plus a product of matrices spread over a warp, which must all be here.

        16 by 16 times 16 by 8 of `f16` or `bf16` and 16 by 8 times 8 by 8 of `tf32` have sums F32x4; 16 by 32 times 32
        by 8 of 8-bit integers, such as `u8.s8`, sums S32x4 that wrap. The PTX ISA draws who holds what."""
        return self._pure("mma", total.type, (a, *b, total), (kind,))

    def finish(self) -> Kernel:
        if self.level:
            raise InternalError(f"kernel {self.kernel.name} ends inside a block")
        return self.kernel

    # Memory

    def load(
        self, buffer: Buffer, index: Value, lanes: int = 1, mask: Value | None = None, alignment: int = 0
    ) -> Value:
        """`lanes` consecutive elements from `index`; lanes where `mask` is false read nothing and are 0.

        With a vector `index` (lanes equal to its lanes) each lane reads its own element.
        """
        lanes = max(lanes, index.lanes)
        operands = (index,) if mask is None else (index, self.splat(mask, lanes))
        attributes = (buffer, alignment)
        type = KernelType(buffer.element, lanes)
        if buffer.role == "input":
            return self._pure("load", type, operands, attributes, self._load_floor)
        value = Value("load", type, operands, attributes, self.level)
        self._blocks[-1].ops.append(value)
        return value

    def store(self, buffer: Buffer, index: Value, value: Value, mask: Value | None = None, alignment: int = 0) -> None:
        """Write the lanes of `value` to consecutive elements (or, with a vector index, to its elements)."""
        lanes = max(value.lanes, index.lanes)
        if value.element is not buffer.element:
            raise InternalError(f"store of {value.type} into {buffer}")
        masks = () if mask is None else (self.splat(mask, lanes),)
        self._effect("store", (index, self.splat(value, lanes), *masks), (buffer, alignment))

    def prefetch(self, buffer: Buffer, index: Value, near: bool = False) -> None:
        """Ask for the cache line of an element that is read soon, or written; any index is allowed.

        `near` wants it in the fastest cache, to be written where the buffer is an output; else the second will do.
        """
        self._effect("prefetch", (index,), (buffer, near))

    # Control flow

    @contextmanager
    def loop(
        self, lower: Value | int, upper: Value | int, step: int = 1, carry: Sequence[Value] = ()
    ) -> Iterator["Loop"]:
        """A counted loop. Inside, `loop.index` counts and `loop.carried` hold the values of this round;
        call `loop.yield_(...)` with those of the next. After the block, `loop.results` are the last ones."""
        low = self.const(lower) if isinstance(lower, int) else lower
        high = self.const(upper) if isinstance(upper, int) else upper
        op = For(low, high, step, carry, self.level)
        loop = Loop(op)
        certain = low.is_constant and high.is_constant and low.attributes[0] < high.attributes[0]
        with self._open(op.body, fence_loads=not certain):
            yield loop
            if len(op.body.results) != len(carry):
                raise InternalError(f"a loop of {self.kernel.name} carries {len(carry)} values and yields others")
        self._blocks[-1].ops.append(op)

    @contextmanager
    def if_(self, condition: Value) -> Iterator["Branch"]:
        """Two-sided choice: `with b.if_(c) as branch: with branch.then(): branch.yield_(x)` and so on."""
        op = If(condition, self.level)
        branch = Branch(self, op)
        yield branch
        types = [v.type for v in op.then.results]
        if types != [v.type for v in op.otherwise.results]:
            raise InternalError(f"the sides of an if in {self.kernel.name} yield different types")
        op.results += [Value("result", t, (op,), (k,), self.level) for k, t in enumerate(types)]
        self._blocks[-1].ops.append(op)


class Loop:
    """Handle of a loop under construction."""

    def __init__(self, op: For) -> None:
        self._op = op
        self.index = op.body.parameters[0]
        self.carried = op.body.parameters[1:]
        self.results = op.results

    def yield_(self, *values: Value) -> None:
        carried = [v.type for v in self.carried]
        if [v.type for v in values] != carried:
            raise InternalError(f"loop carries {carried} but yields {[v.type for v in values]}")
        self._op.body.results = values


class Branch:
    """Handle of an `If` under construction."""

    def __init__(self, builder: KernelBuilder, op: If) -> None:
        self._builder = builder
        self._op = op
        self._block = op.then
        self.results = op.results

    @contextmanager
    def _side(self, block: Block) -> Iterator[None]:
        self._block = block
        with self._builder._open(block, fence_loads=True):
            yield

    def then(self) -> Any:
        return self._side(self._op.then)

    def otherwise(self) -> Any:
        return self._side(self._op.otherwise)

    def yield_(self, *values: Value) -> None:
        self._block.results = values
