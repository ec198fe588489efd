"""Memory accesses of a kernel as LLVM IR: loads and stores of scalars and vectors, masked, gathered and scattered."""

from onnxla.codegen.cpu.llvm_text import Writer, llvm_type, scalar_type, suffix_of
from onnxla.codegen.kernels.ir import Buffer, KernelType, Value
from onnxla.errors import InternalError
from onnxla.hlo.types import PRED, U8, ElementType


def _first_lane_only(mask: Value) -> bool:
    """Whether a mask is known to be true for lane 0 and no other.

    With AVX-512, LLVM turns the masked store of one truncated element into a store of the whole element it was cut
    from, and so into the bytes behind it. Therefore such an element is stored as a scalar.
    """
    if mask.opcode != "cmp" or mask.attributes != ("LT",):
        return False
    lanes, limit = mask.operands
    return lanes.opcode == "step" and limit.is_constant and limit.attributes[0] == 1


def stored_element(element: ElementType) -> ElementType:
    """What memory holds for an element: a byte for a truth value."""
    return U8 if element is PRED else element


def stored_type(element: ElementType) -> str:
    """The same as LLVM spells it."""
    return scalar_type(stored_element(element))


class MemoryWriter(Writer):
    """Writes accesses to the buffers of a kernel, for registers of `vector_bytes`."""

    def __init__(self, vector_bytes: int) -> None:
        super().__init__()
        self.vector_bytes = vector_bytes
        self.pointers: dict[Buffer, str] = {}

    def address(self, buffer: Buffer, index: Value) -> str:
        """The address of an element, or of one for each lane of the index."""
        return self.fresh(
            f"getelementptr inbounds {stored_type(buffer.element)}, ptr {self.pointers[buffer]}, {self.typed(index)}"
        )

    def prefetch(self, op: Value) -> None:
        buffer, near = op.attributes
        address = self.address(buffer, op.operands[0])
        written = int(near and buffer.role == "output")
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {address}, i32 {written}, i32 {3 if near else 2}, i32 1)")

    def load(self, op: Value) -> str:
        """What memory holds, as a value of the kernel IR."""
        buffer, alignment = op.attributes
        index, *mask = op.operands
        address = self.address(buffer, index)
        lanes = op.lanes
        memory = KernelType(stored_element(buffer.element), lanes)
        kind, suffix = llvm_type(memory), suffix_of(memory)
        align = alignment or buffer.element.bytes
        if index.lanes > 1:
            masks = self.ref(mask[0]) if mask else "splat (i1 true)"
            got = self.fresh(
                f"call {kind} @llvm.masked.gather.{suffix}.v{lanes}p0(<{lanes} x ptr> align {align} {address}, "
                f"<{lanes} x i1> {masks}, {kind} zeroinitializer)"
            )
        elif mask and lanes > 1:
            got = self.masked_load(memory, address, align, mask[0])
        elif mask:
            raise InternalError("a scalar load has no mask: guard it with an if")
        else:
            got = self.fresh(f"load {kind}, ptr {address}, align {align}")
        if buffer.element is PRED:
            zero = "0" if lanes == 1 else "zeroinitializer"
            got = self.fresh(f"icmp ne {kind} {got}, {zero}")
        return got

    def parts(self, memory: KernelType) -> list[range]:
        """The lanes of a vector in memory, a register at a time.

        Masked accesses are printed so. LLVM 22, with AVX2, divides one wider than a register itself, and takes the
        mask of a register for all true where it knows that it is all false: a load then gives what is behind the
        array for zeros. That comes from a mask that two registers share, therefore each gets its own (`mask_of`).
        """
        size = min(memory.lanes, max(self.vector_bytes // memory.element.bytes, 1))
        return [range(first, first + size) for first in range(0, memory.lanes, size)]

    def mask_of(self, mask: Value, lanes: range) -> str:
        """Some lanes of a mask, computed for them alone."""
        kind = f"<{len(lanes)} x i1>"
        if mask.is_constant or mask.lanes == len(lanes):
            return self.ref(mask)
        match mask.opcode:
            case "and" | "or":
                a, b = (self.mask_of(side, lanes) for side in mask.operands)
                return self.fresh(f"{mask.opcode} {kind} {a}, {b}")
            case "not":
                return self.fresh(f"xor {kind} {self.mask_of(mask.operands[0], lanes)}, splat (i1 true)")
            case "splat":
                return self.copies(mask.operands[0], len(lanes))
        return self.lanes_of(mask.type, self.ref(mask), self.ref(mask), lanes)

    def masked_load(self, memory: KernelType, address: str, align: int, mask: Value) -> str:
        """A vector with zeros where the mask is false."""
        loaded = []
        for lanes in self.parts(memory):
            part = memory.with_lanes(len(lanes))
            kind, place = llvm_type(part), self.behind(address, memory.element, lanes.start)
            loaded.append(
                self.fresh(
                    f"call {kind} @llvm.masked.load.{suffix_of(part)}.p0(ptr align {align} {place}, "
                    f"<{len(lanes)} x i1> {self.mask_of(mask, lanes)}, {kind} zeroinitializer)"
                )
            )
        return self.joined(memory.with_lanes(memory.lanes // len(loaded)), loaded)

    def masked_store(self, memory: KernelType, stored: str, address: str, align: int, mask: Value) -> None:
        for lanes in self.parts(memory):
            part = memory.with_lanes(len(lanes))
            value = stored if part == memory else self.lanes_of(memory, stored, stored, lanes)
            place, masked = self.behind(address, memory.element, lanes.start), self.mask_of(mask, lanes)
            self.lines.append(
                f"  call void @llvm.masked.store.{suffix_of(part)}.p0({llvm_type(part)} {value}, "
                f"ptr align {align} {place}, <{len(lanes)} x i1> {masked})"
            )

    def behind(self, address: str, element: ElementType, count: int) -> str:
        return self.fresh(f"getelementptr {scalar_type(element)}, ptr {address}, i64 {count}") if count else address

    def lanes_of(self, type: KernelType, low: str, high: str, chosen: range) -> str:
        """Lanes `chosen` of two vectors of a type, one behind the other."""
        kind = llvm_type(type)
        indices = ", ".join(f"i32 {k}" for k in chosen)
        return self.fresh(f"shufflevector {kind} {low}, {kind} {high}, <{len(chosen)} x i32> <{indices}>")

    def joined(self, type: KernelType, parts: list[str]) -> str:
        """Vectors of a type, end to end; their number is a power of two."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.lanes_of(type, low, high, range(2 * type.lanes)) for low, high in pairs]
            type = type.with_lanes(2 * type.lanes)
        return parts[0]

    def store(self, op: Value) -> None:
        """A value of the kernel IR as memory holds it."""
        buffer, alignment = op.attributes
        index, value, *mask = op.operands
        address = self.address(buffer, index)
        memory = KernelType(stored_element(buffer.element), value.lanes)
        kind, suffix, stored = llvm_type(memory), suffix_of(memory), self.ref(value)
        if buffer.element is PRED:
            stored = self.fresh(f"zext {self.typed(value)} to {kind}")
        align = alignment or buffer.element.bytes
        if index.lanes > 1:
            masks = self.ref(mask[0]) if mask else "splat (i1 true)"
            self.lines.append(
                f"  call void @llvm.masked.scatter.{suffix}.v{value.lanes}p0({kind} {stored}, "
                f"<{value.lanes} x ptr> align {align} {address}, <{value.lanes} x i1> {masks})"
            )
        elif mask and _first_lane_only(mask[0]):
            element = self.fresh(f"extractelement {kind} {stored}, i64 0")
            self.lines.append(f"  store {stored_type(buffer.element)} {element}, ptr {address}, align {align}")
        elif mask:
            self.masked_store(memory, stored, address, align, mask[0])
        else:
            self.lines.append(f"  store {kind} {stored}, ptr {address}, align {align}")
