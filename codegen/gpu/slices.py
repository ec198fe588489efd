"""Slices of a matrix in shared memory, as tensor cores take them.

Shared memory holds a slice in chunks of 16 bytes, along depth or across it as the matrix lies in memory. Chunk c of row
r is at place c xor (r / rows in 128 bytes), so that neither the eight rows of a tile that `load_matrix` reads nor the
chunks that eight threads write share a bank.

What lies in memory as it is multiplied is copied without passing registers, up to 16 bytes at a time; the rest (fused
producers, odd sizes) goes through `value`, element by element.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from onnxla.codegen.gpu.product import Located
from onnxla.codegen.gpu.views import Viewed
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Buffer, Value
from onnxla.codegen.kernels.value import ValueEmitter
from onnxla.hlo.types import F32, ElementType

CHUNK_BYTES = 16


@dataclass(frozen=True)
class Factor:
    """One factor of a product: a matrix of lines (rows of the left one, columns of the right one) by depth."""

    held: ElementType
    lines: int
    depth: int
    runs_along_depth: bool
    run: int
    """As in a `View`."""
    viewed: Viewed | None
    """Where it lies, if it lies in memory."""
    located: Callable[[Expr, Expr], Located]
    """Of depth and line."""
    value: Callable[[Expr, Expr], Value]
    """Of depth and line, in the compute type; zero outside."""


class Slices:
    """`stages` slices of `width` lines by `step` of depth, which the threads of a block share."""

    def __init__(
        self,
        e: ValueEmitter,
        thread: Expr,
        threads: int,
        factor: Factor,
        width: int,
        step: int,
        is_left: bool,
        stages: int,
    ) -> None:
        self.e, self.b, self.thread, self.threads = e, e.b, thread, threads
        self.factor, self.is_left, held = factor, is_left, factor.held
        self.chunk = CHUNK_BYTES // held.bytes
        # only 16-bit elements are transposed on their way to registers
        self.along_depth = factor.runs_along_depth or held.bytes != 2
        self.rows, self.row = (width, step) if self.along_depth else (step, width)
        element = storage.storage_element(held)
        name = "left" if is_left else "right"
        self.buffer: Buffer = self.b.shared(name, element, stages * width * step, CHUNK_BYTES)
        copied = factor.viewed is not None and self.along_depth == factor.runs_along_depth
        self.run = factor.viewed.run(math.gcd(factor.run, self.chunk)) if factor.viewed and copied else 1
        """Elements that are brought together."""
        self.is_copied = copied and self.run * held.bytes >= 4
        """Without passing registers; the hardware does not copy less than 4 bytes."""

    def place(self, stage: Expr, row: Expr, chunk: Expr) -> Expr:
        """Of the first element of a chunk."""
        e, b, size = self.e, self.b, self.chunk
        chunks = self.row // size
        within = min(chunks, 8)
        turn = (row // max(8 // chunks, 1)) % within
        turned = e.bind("turned", b.binary("xor", e.position(chunk), e.position(turn)), 0, chunks - 1)
        return stage * (self.rows * self.row) + row * self.row + turned * size

    def bring(self, stage: Expr, first_line: Expr, first_depth: Expr) -> None:
        """All threads bring the slice that begins there; zeros around the matrix. What is copied is there after
        `wait_for_copies`."""
        e, b = self.e, self.b
        parcels = self.rows * self.row // self.run
        for part in range(-(-parcels // self.threads)):
            number = self.thread + part * self.threads
            if (part + 1) * self.threads <= parcels:
                self._parcel(number, stage, first_line, first_depth)
                continue
            with b.if_(b.compare("LT", e.position(number), b.const(parcels))) as branch:
                with branch.then(), e.scope():
                    inside = e.bind("number", e.position(number), 0, parcels - 1)
                    self._parcel(inside, stage, first_line, first_depth)
                with branch.otherwise():
                    pass

    def _parcel(self, number: Expr, stage: Expr, first_line: Expr, first_depth: Expr) -> None:
        if self.along_depth == self.factor.runs_along_depth:
            row, element = number // (self.row // self.run), number % (self.row // self.run) * self.run
        else:
            # a warp reads four times eight neighbours, and writes eight chunks
            row = number % 8 + number // 32 % (self.rows // 8) * 8
            element = number // 8 % 4 + number // (4 * self.rows) * 4
        line, depth = (row, element) if self.along_depth else (element, row)
        line, depth = first_line + line, first_depth + depth
        place = self.place(stage, row, element // self.chunk) + element % self.chunk
        if self.is_copied:
            self._copy(place, depth, line)
        else:
            value = storage.encode(self.b, self.factor.value(depth, line), self.factor.held)
            self.b.store(self.buffer, self.e.position(place), value)

    def _copy(self, place: Expr, depth: Expr, line: Expr) -> None:
        e, b, factor, viewed = self.e, self.b, self.factor, self.factor.viewed
        assert viewed is not None
        # beyond the matrix the last parcel stands in, and nothing of it is read
        last_depth, last_line = factor.depth - 1, factor.lines - 1
        if self.along_depth:
            last_depth = factor.depth - self.run
        else:
            last_line = factor.lines - self.run
        inside = b.and_(e.inside(depth, 0, factor.depth), e.inside(line, 0, factor.lines))
        present, index = factor.located(self._within(depth, last_depth), self._within(line, last_line))
        at = viewed.position(index)
        condition = b.and_(inside, present)
        position = e.position(at)
        if at.low < 0 or at.high >= viewed.array.type.size:
            position = b.select(condition, position, b.const(0))
        b.copy_async(self.buffer, e.position(place), viewed.array.buffer, position, self.run, condition)

    def _within(self, expr: Expr, last: int) -> Expr:
        if expr.high <= last:
            return expr
        return self.e.bind("within", self.b.min(self.e.position(expr), self.b.const(last)), 0, last)

    def load(self, stage: Expr, lines: Expr, pair: int, lane: Expr) -> Value:
        """16 lines by two chunks of depth as `mma` takes them: of the left factor first all lines, of the right one
        first all depth."""
        b = self.b
        low, high = lane // 8 % 2, lane // 16
        along_lines, along_chunks = (low, high) if self.is_left else (high, low)
        if self.along_depth:
            row, chunk = lines + along_lines * 8 + lane % 8, along_chunks + pair * 2
        else:
            row, chunk = along_chunks * 8 + lane % 8 + pair * 16, lines // 8 + along_lines
        loaded = b.load_matrix(self.buffer, self.e.position(self.place(stage, row, chunk)), not self.along_depth)
        if self.factor.held is not F32:
            return loaded
        return b.pack([b.round_to_tf32(b.extract(loaded, k)) for k in range(4)])
