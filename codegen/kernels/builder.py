"""Build kernels: each operation is emitted once, as far out as its operands allow.

Pure operations are numbered by value, so asking twice gives the same Value, and they are placed
in the outermost open block in which their operands exist: loop-invariant code is outside the loop
from the start. Loads from input buffers move likewise, but never out of an `If` or a loop that may
not run. Constants fold, and index arithmetic with 0 and 1 vanishes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from onnxla.codegen.kernels.ir import BINARY, INDEX, Block, Buffer, For, If, Kernel, KernelType, Value
from onnxla.errors import InternalError
from onnxla.hlo.types import PRED, U32, ElementType, Kind


class KernelBuilder:
    """Builds one kernel. Parameters first, then the body, then `finish`."""

    def __init__(self, name: str, tasks: int = 1, looks_up: bool = False) -> None:
        """`looks_up` says that the target has `lookup`."""
        self.looks_up = looks_up
        self.kernel = Kernel(name, [], tasks, Block([Value("task", KernelType(INDEX))]))
        self._blocks: list[Block] = [self.kernel.body]
        self._numbering: list[dict[tuple[Any, ...], Value]] = [{}]
        self._load_floor = 0

    @property
    def task(self) -> Value:
        return self.kernel.task

    @property
    def level(self) -> int:
        """How many blocks are open inside the body."""
        return len(self._blocks) - 1

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

    # Placement

    def _pure(
        self, opcode: str, type: KernelType, operands: Sequence[Value], attributes: tuple[Any, ...] = (), floor: int = 0
    ) -> Value:
        key = (opcode, type, tuple(id(o) for o in operands), attributes)
        for numbering in self._numbering:
            if key in numbering:
                return numbering[key]
        level = max([floor, *(o.level for o in operands)])
        value = Value(opcode, type, operands, attributes, level)
        self._blocks[level].ops.append(value)
        self._numbering[level][key] = value
        return value

    def _effect(self, opcode: str, operands: Sequence[Value], attributes: tuple[Any, ...]) -> None:
        self._blocks[-1].ops.append(Value(opcode, None, operands, attributes, self.level))

    # Constants and vectors

    def const(self, value: Any, element: ElementType = INDEX, lanes: int = 1) -> Value:
        """The same constant in every lane."""
        number = element.dtype.type(value) if element.kind is not Kind.PRED else bool(value)
        key = number.tobytes() if isinstance(number, np.generic) else number
        type = KernelType(element, lanes)
        found = self._numbering[0].get(("const", type, key))
        if found is None:
            found = Value("const", type, (), (number.item() if isinstance(number, np.generic) else number,), 0)
            self._numbering[0]["const", type, key] = found
        return found

    def splat(self, value: Value, lanes: int) -> Value:
        """A vector of `lanes` copies; the value itself where it has that many lanes already."""
        if value.lanes == lanes:
            return value
        if value.lanes != 1:
            raise InternalError(f"cannot splat {value.type} to {lanes} lanes")
        if value.is_constant:
            return self.const(value.attributes[0], value.element, lanes)
        return self._pure("splat", value.type.with_lanes(lanes), (value,))

    def step(self, lanes: int, element: ElementType = INDEX) -> Value:
        """The vector 0, 1, ..., lanes - 1."""
        if lanes == 1:
            return self.const(0, element)
        return self._pure("step", KernelType(element, lanes), ())

    def extract(self, vector: Value, lane: int) -> Value:
        if vector.lanes == 1:
            return vector
        if vector.opcode == "splat":
            return vector.operands[0]
        if vector.is_constant:
            return self.const(vector.attributes[0], vector.element)
        if vector.opcode == "pack":
            return vector.operands[lane]
        return self._pure("extract", vector.type.with_lanes(1), (vector,), (lane,))

    def pack(self, scalars: Sequence[Value]) -> Value:
        """The vector of these scalars."""
        if all(s is scalars[0] for s in scalars):
            return self.splat(scalars[0], len(scalars))
        return self._pure("pack", scalars[0].type.with_lanes(len(scalars)), scalars)

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """The vector whose lane k is lane `lanes[k]` of a and b put end to end."""
        if a.lanes == 1:
            return self.pack([(a, b)[k] for k in lanes])
        return self._pure("shuffle", a.type.with_lanes(len(lanes)), (a, b), tuple(lanes))

    def horizontal(self, opcode: str, vector: Value) -> Value:
        """All lanes combined by `opcode`, as a balanced tree: lane k with lane k + n/2, and so on."""
        while vector.lanes > 1:
            vector = self.binary(opcode, self.half(vector, 0), self.half(vector, 1))
        return vector

    def any(self, mask: Value) -> Value:
        """Whether a pred holds in any lane, as a scalar."""
        return mask if mask.lanes == 1 else self._pure("any", mask.type.with_lanes(1), (mask,))

    def half(self, vector: Value, which: int) -> Value:
        """The low (0) or high (1) half of a vector; a scalar where it had two lanes."""
        lanes = vector.lanes // 2
        if lanes == 1:
            return self.extract(vector, which)
        return self.shuffle(vector, vector, range(which * lanes, (which + 1) * lanes))

    # Arithmetic

    def _together(self, *values: Value) -> list[Value]:
        lanes = max(v.lanes for v in values)
        return [self.splat(v, lanes) for v in values]

    def unary(self, opcode: str, x: Value) -> Value:
        return self._pure(opcode, x.type, (x,))

    def binary(self, opcode: str, a: Value, b: Value) -> Value:
        a, b = self._together(a, b)
        if a.type != b.type or opcode not in BINARY:
            raise InternalError(f"{opcode} of {a.type} and {b.type}")
        if a.element is INDEX:
            simple = self._simplify_index(opcode, a, b)
            if simple is not None:
                return simple
        return self._pure(opcode, a.type, (a, b))

    def _simplify_index(self, opcode: str, a: Value, b: Value) -> Value | None:
        if a.is_constant and b.is_constant:
            x, y = a.attributes[0], b.attributes[0]
            folded = {
                "add": lambda: x + y,
                "sub": lambda: x - y,
                "mul": lambda: x * y,
                "div": lambda: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
                "rem": lambda: abs(x) % abs(y) * (1 if x >= 0 else -1),
                "min": lambda: min(x, y),
                "max": lambda: max(x, y),
            }.get(opcode)
            return self.const(folded(), INDEX, a.lanes) if folded else None
        if b.is_constant:
            y = b.attributes[0]
            if (opcode in ("add", "sub") and y == 0) or (opcode in ("mul", "div") and y == 1):
                return a
            if (opcode == "mul" and y == 0) or (opcode == "rem" and y == 1):
                return self.const(0, INDEX, a.lanes)
        if a.is_constant and opcode in ("add", "mul"):
            return self.binary(opcode, b, a)
        return None

    def add(self, a: Value, b: Value) -> Value:
        return self.binary("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.binary("sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.binary("mul", a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.binary("div", a, b)

    def min(self, a: Value, b: Value) -> Value:
        return self.binary("min", a, b)

    def max(self, a: Value, b: Value) -> Value:
        return self.binary("max", a, b)

    def and_(self, a: Value, b: Value) -> Value:
        """Bits, or truth of preds; a constant true or false side vanishes."""
        for x, y in ((a, b), (b, a)):
            if x.is_constant and x.element is PRED:
                return self.splat(y, max(a.lanes, b.lanes)) if x.attributes[0] else x
        return self.binary("and", a, b)

    def or_(self, a: Value, b: Value) -> Value:
        for x, y in ((a, b), (b, a)):
            if x.is_constant and x.element is PRED:
                return x if x.attributes[0] else self.splat(y, max(a.lanes, b.lanes))
        return self.binary("or", a, b)

    def not_(self, x: Value) -> Value:
        if x.is_constant and x.element is PRED:
            return self.const(not x.attributes[0], PRED, x.lanes)
        return self.unary("not", x)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c with one rounding (floats)."""
        a, b, c = self._together(a, b, c)
        return self._pure("fma", a.type, (a, b, c))

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c, with one rounding where the machine has such an instruction and with two elsewhere."""
        return self.add(self.mul(a, b), c)

    def compare(self, direction: str, a: Value, b: Value) -> Value:
        a, b = self._together(a, b)
        if a.type != b.type:
            raise InternalError(f"compare of {a.type} and {b.type}")
        if a.element is INDEX and a.is_constant and b.is_constant:
            x, y = a.attributes[0], b.attributes[0]
            truth = {"EQ": x == y, "NE": x != y, "LT": x < y, "LE": x <= y, "GT": x > y, "GE": x >= y}[direction]
            return self.const(truth, PRED, a.lanes)
        return self._pure("cmp", a.type.with_element(PRED), (a, b), (direction,))

    def select(self, condition: Value, on_true: Value, on_false: Value) -> Value:
        """A scalar condition may choose between vectors."""
        if condition.is_constant:
            return on_true if condition.attributes[0] else on_false
        on_true, on_false = self._together(on_true, on_false)
        if on_true is on_false:
            return on_true
        if condition.lanes > 1:
            on_true, on_false = self.splat(on_true, condition.lanes), self.splat(on_false, condition.lanes)
        return self._pure("select", on_true.type, (condition, on_true, on_false))

    def convert(self, x: Value, element: ElementType) -> Value:
        """The value in another type.

        Float to float rounds to nearest even; float to integer truncates, NaN is 0 and what is outside the range the
        nearest limit; integer to integer wraps; to pred is `x != 0`.
        """
        if x.element is element:
            return x
        if x.is_constant and x.element is INDEX and element.is_integer:
            return self.const(x.attributes[0], element, x.lanes)
        return self._pure("convert", x.type.with_element(element), (x,))

    def bitcast(self, x: Value, element: ElementType) -> Value:
        """The same bits as another type of the same width."""
        return x if x.element is element else self._pure("bitcast", x.type.with_element(element), (x,))

    def reinterpret(self, x: Value, element: ElementType) -> Value:
        """The bits of a vector as fewer, wider lanes: u8x16 as s32x4, u8x4 as a scalar s32."""
        lanes = x.lanes * x.element.bits // element.bits
        return self._pure("reinterpret", KernelType(element, lanes), (x,))

    def dot_accumulate(self, total: Value, a: Value, b: Value, group: int) -> Value:
        """`total` (s32) plus, in each lane, the products of the `group` narrow integers packed in `a` and `b`.

        With groups of four `a` holds unsigned and `b` signed bytes; with groups of two both hold signed 16 bits.
        """
        total, a, b = self._together(total, a, b)
        return self._pure("dot_accumulate", total.type, (total, a, b), (group,))

    def lookup(self, table: Sequence[int], index: Value) -> Value:
        """In each lane one of the eight S32 numbers of `table`: the last three bits of `index` (S32) say which."""
        return self._pure("lookup", index.type, (index,), tuple(table))

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
    def _open(self, block: Block, fence_loads: bool) -> Iterator[None]:
        floor = self._load_floor
        self._blocks.append(block)
        self._numbering.append({})
        if fence_loads:
            self._load_floor = self.level
        try:
            yield
        finally:
            self._blocks.pop()
            self._numbering.pop()
            self._load_floor = floor

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
