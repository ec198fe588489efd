"""Slice, StridedSlice with all its masks, and what they are the gradients and updates of."""

from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Concatenate, Reshape
from onnxla.hlo.types import S64


@tf_op("Slice")
def slice_(node: NodeView, b: Builder) -> Instruction:
    """A size of -1 reaches to the end. Starts that are not known make a dynamic slice of known sizes."""
    x, sizes = node.input(0), node.constant_ints(2)
    begin = node.known(1)
    if begin is None and -1 not in sizes:
        vector = b.convert(node.input(1), S64)
        starts = [b.reshape(b.slice(vector, [d], [d + 1]), ()) for d in range(len(sizes))]
        return b.dynamic_slice(x, starts, sizes)
    places = node.constant_ints(1)
    if not len(places) == len(sizes) == len(x.shape):
        node.shape_error(f"begin {list(places)} and size {list(sizes)} do not fit {x.tensor_type}")
    limits = [n if s == -1 else p + s for n, p, s in zip(x.shape, places, sizes, strict=True)]
    return b.slice(x, places, limits)


@dataclass(frozen=True)
class Cut:
    """What happens to one dimension: elements start, start + step, ..., `count` of them, forwards or backwards."""

    start: int | Instruction
    count: int
    step: int
    shrinks: bool
    """Whether the dimension, of size 1, goes."""

    @property
    def lowest(self) -> int:
        """The first element in the order of the input."""
        assert isinstance(self.start, int)
        return self.start if self.step > 0 else self.start + self.step * (self.count - 1)


@dataclass(frozen=True)
class Cuts:
    """A strided slice: what each dimension loses, and the shape that comes out, with new dimensions."""

    dimensions: tuple[Cut, ...]
    shape: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(c.count for c in self.dimensions)

    @property
    def backwards(self) -> list[int]:
        return [d for d, c in enumerate(self.dimensions) if c.step < 0 and c.count > 1]


@tf_op("StridedSlice")
def strided_slice(node: NodeView, b: Builder) -> Instruction:
    x = node.input(0)
    cuts = _read(node, b, x.shape, 1)
    return b.reshape(_taken(b, x, cuts), cuts.shape)


def _taken(b: Builder, x: Instruction, cuts: Cuts) -> Instruction:
    """The elements, every dimension kept."""
    unknown = {d: c.start for d, c in enumerate(cuts.dimensions) if isinstance(c.start, Instruction)}
    if unknown:
        zero = b.constant(0, S64)
        sizes = [1 if d in unknown else n for d, n in enumerate(x.shape)]
        x = b.dynamic_slice(x, [unknown.get(d, zero) for d in range(len(x.shape))], sizes)
    known = [c if d not in unknown else Cut(0, 1, 1, True) for d, c in enumerate(cuts.dimensions)]
    starts = [c.lowest if c.count else 0 for c in known]
    strides = [abs(c.step) for c in known]
    limits = [s + (c.count - 1) * k + 1 if c.count else s for s, c, k in zip(starts, known, strides, strict=True)]
    if tuple(limits) != x.shape or any(starts) or any(k != 1 for k in strides):
        x = b.slice(x, starts, limits, strides)
    return b.reverse(x, cuts.backwards) if cuts.backwards else x


@tf_op("StridedSliceGrad")
def strided_slice_grad(node: NodeView, b: Builder) -> Instruction:
    """Zeros but where the slice was taken."""
    shape = node.constant_ints(0)
    cuts = _read(node, b, shape, 1)
    g = b.reshape(node.input(4), cuts.counts)
    zero = b.constant(0, g.tensor_type.element)
    unknown = {d: c.start for d, c in enumerate(cuts.dimensions) if isinstance(c.start, Instruction)}
    g = b.reverse(g, cuts.backwards) if cuts.backwards else g
    if 0 in cuts.counts:
        return b.broadcast_scalar(zero, shape)
    low, high, interior = [], [], []
    for d, c in enumerate(cuts.dimensions):
        first, step = (0, 1) if d in unknown else (c.lowest, abs(c.step))
        low.append(first)
        interior.append(step - 1)
        high.append(0 if d in unknown else shape[d] - first - (c.count - 1) * step - 1)
    g = b.pad(g, zero, low, high, interior)
    if not unknown:
        return g
    starts = [unknown.get(d, b.constant(0, S64)) for d in range(len(shape))]
    return b.dynamic_update_slice(b.broadcast_scalar(zero, shape), g, starts)


@tf_op("TensorStridedSliceUpdate")
def tensor_strided_slice_update(node: NodeView, b: Builder) -> Instruction:
    """The tensor with a slice of step 1 replaced."""
    x, value = node.input(0), node.input(4)
    cuts = _read(node, b, x.shape, 1)
    if any(c.step != 1 for c in cuts.dimensions):
        node.unsupported("an update of a slice with steps", "steps of 1 are supported")
    starts = [c.start if isinstance(c.start, Instruction) else b.constant(c.start, S64) for c in cuts.dimensions]
    update = b.reshape(b.numpy_broadcast(value, cuts.shape), cuts.counts)
    return b.dynamic_update_slice(x, update, starts)


def _read(node: NodeView, b: Builder, shape: Sequence[int], first: int) -> Cuts:
    """The operands begin, end and strides from number `first` on, under the five masks."""
    steps = node.constant_ints(first + 2)
    count = len(steps)
    if any(node.input(first + k).shape != (count,) for k in (0, 1)):
        node.shape_error("begin, end and strides differ in length")
    begins = [_element(node, b, first, i) for i in range(count)]
    masks = {name: node.int(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}

    def masked(name: str, i: int) -> bool:
        return bool(masks[name] >> i & 1)

    named = sum(not masked("new_axis", i) and not masked("ellipsis", i) for i in range(count))
    hidden = len(shape) - named
    if hidden < 0 or bin(masks["ellipsis"]).count("1") > 1:
        node.shape_error(f"{count} slices do not fit {list(shape)}")
    cuts: list[Cut] = []
    result: list[int] = []
    seen_ellipsis = False
    for i in range(count):
        if masked("ellipsis", i):
            seen_ellipsis = True
            kept = shape[len(cuts) : len(cuts) + hidden]
            cuts += [Cut(0, n, 1, False) for n in kept]
            result += kept
        elif masked("new_axis", i):
            result.append(1)
        else:
            size = shape[len(cuts)]
            if masked("shrink_axis", i):
                cuts.append(_one(node, b, size, begins[i]))
            else:
                begin = None if masked("begin", i) else _known(node, begins[i], first)
                end = None if masked("end", i) else _known(node, _element(node, b, first + 1, i), first + 1)
                cuts.append(_some(node, size, begin, end, steps[i]))
                result.append(cuts[-1].count)
    if not seen_ellipsis:
        rest = shape[len(cuts) :]
        cuts += [Cut(0, n, 1, False) for n in rest]
        result += rest
    return Cuts(tuple(cuts), tuple(result))


def _element(node: NodeView, b: Builder, operand: int, i: int) -> int | Instruction:
    """Element `i` of a vector operand; of one that is joined from parts, known where that part is."""
    whole = node.known(operand)
    if whole is not None:
        return int(whole.reshape(-1)[i])
    part = _part(node.input(operand), i)
    if part is not None:
        known = node.host.known_value(part)
        if known is not None:
            return int(known.reshape(-1)[0])
    vector = b.convert(node.input(operand), S64)
    return b.reshape(b.slice(vector, [i], [i + 1]), ())


def _part(vector: Instruction, i: int) -> Instruction | None:
    """The instruction that alone makes element `i`, where the vector is joined from such."""
    while isinstance(vector.op, (Convert, Reshape)) and len(vector.operands[0].shape) == 1:
        vector = vector.operands[0]
    if not isinstance(vector.op, Concatenate):
        return None
    for operand in vector.operands:
        if i < operand.shape[0]:
            return operand if operand.shape[0] == 1 else None
        i -= operand.shape[0]
    return None


def _known(node: NodeView, value: int | Instruction, operand: int) -> int:
    """A limit that decides a size. Raises the problem that it is not known."""
    if isinstance(value, int):
        return value
    return node.constant_ints(operand)[0]


def _one(node: NodeView, b: Builder, size: int, begin: int | Instruction) -> Cut:
    """One element, whose dimension goes. Negative places count from the end."""
    if isinstance(begin, Instruction):
        negative = b.compare(begin, b.full_like(begin, 0), "LT")
        return Cut(b.select(negative, b.add(begin, b.full_like(begin, size)), begin), 1, 1, True)
    place = begin + size if begin < 0 else begin
    if not 0 <= place < size:
        node.shape_error(f"element {begin} is outside of a dimension of size {size}")
    return Cut(place, 1, 1, True)


def _some(node: NodeView, size: int, begin: int | None, end: int | None, step: int) -> Cut:
    """As Python's slices; None is an open end."""
    if step == 0:
        node.shape_error("a slice has a step of 0")
    places = range(*slice(begin, end, step).indices(size))
    return Cut(places.start if len(places) else 0, len(places), step, False)
