"""What a lower precision would do to a model: the sizes of the numbers that it rounds, and the results.

The passes run up to the point where factors of products are rounded. There the largest magnitude of every factor
becomes a further output, or the rounding is put in, and the module is compiled for the CPU, which has no such precision
of its own: so it is seen without a GPU, weights and everything that passes have folded included.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from onnxla.compiler.compiler import Compiler
from onnxla.compiler.sources import Imported, Shapes, Source
from onnxla.config import CompileOptions
from onnxla.errors import InputError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.types import BF16, F16, F32, ElementType
from onnxla.passes.lower_contractions import LowerContractions, names_of, products_of_f32
from onnxla.passes.pass_base import program_computations
from onnxla.passes.pipelines import optimize
from onnxla.runtime.executable import Executable
from onnxla.runtime.signature import ModelSignature
from onnxla.runtime.tensors import Array, TensorSignature

ELEMENTS: Mapping[str, ElementType] = {"fp16": F16, "bf16": BF16}
"""The element types that factors are rounded to, by precision."""
LARGEST = {"fp16": 65504.0, "bf16": float(np.finfo(np.float32).max), "tf32": float(np.finfo(np.float32).max)}
"""The largest number of each, but for its last bits."""
_VANISHING = {"fp16": 2.0**-25, "bf16": 0.0, "tf32": 0.0}
"""Up to here numbers become 0 that were not."""
_NEAR = 1 / 8
"""The part of the range from which on other inputs may well leave it."""
_BEFORE = "integer-contractions"
"""The pass behind which factors are rounded."""


@dataclass(frozen=True)
class FactorRange:
    """The factors of one product or convolution, with the inputs of one run."""

    node: str
    """Its name in the model, as `keep_f32` takes it."""
    place: str
    """The node with its operator and number."""
    largest: tuple[float, float]
    """The largest finite magnitude of either factor."""
    overflows: int
    """Finite numbers of the factors that become infinite."""
    vanishing: float
    """The part of the numbers that are not 0 and become 0."""

    def judged(self, precision: str) -> str:
        """`overflows`, `near` the end of the range, or `fits`."""
        if self.overflows:
            return "overflows"
        return "near" if max(self.largest) > LARGEST[precision] * _NEAR else "fits"


@dataclass(frozen=True)
class Ranges:
    """The factors of a model in the order they are multiplied, those that overflow among them."""

    precision: str
    factors: tuple[FactorRange, ...]
    unwatched: tuple[str, ...]
    """Nodes with products inside loops and branches, whose factors are not seen."""

    @property
    def end(self) -> float:
        """The largest number of the precision."""
        return LARGEST[self.precision]

    @property
    def overflowing(self) -> list[str]:
        """The nodes to keep in f32."""
        return list(dict.fromkeys(f.node for f in self.factors if f.overflows))


def watch_ranges(source: Source, feeds: Mapping[str, Array], options: CompileOptions) -> Ranges:
    """Run a model in f32 on the CPU and look at the factors that `options.precision` would round.

    Those of `options.keep_f32` are left out. Raises InputError for a precision that rounds nothing, or names in
    `keep_f32` that there are not.
    """
    precision = options.precision
    if precision not in LARGEST:
        raise InputError(f"precision={precision!r} rounds no factors; {', '.join(LARGEST)} do")
    watched = _WatchedSource(source, options)
    outputs = _run(watched, feeds, options)
    factors = []
    for k, product in enumerate(watched.products):
        numbers = [float(outputs[f"{_PREFIX}{k}_{name}"]) for name in _WATCHED]
        low, high, over, lost, there = numbers
        node = product.source
        name = names_of(product)[0] if names_of(product) else product.name
        share = lost / there if there else 0.0
        factors.append(FactorRange(name, str(node) if node else product.name, (low, high), int(over), share))
    return Ranges(precision, tuple(factors), watched.unwatched)


def rounded_outputs(source: Source, feeds: Mapping[str, Array], options: CompileOptions) -> dict[str, Array]:
    """What the model gives, by name of its tensors, where the factors of products are rounded as `options.precision`
    says and sums are f32: fp16 and bf16 computed on the CPU. Raises InputError for other precisions."""
    if options.precision not in ELEMENTS:
        raise InputError(
            f"precision={options.precision!r} cannot be imitated on a CPU; {' and '.join(ELEMENTS)} can. On a machine "
            "with a GPU, give --target gpu"
        )
    return _run(_RoundedSource(source, options), feeds, options)


def _run(source: Source, feeds: Mapping[str, Array], options: CompileOptions) -> dict[str, Array]:
    # the conversions are meant: values of half precision are not to be read before they are rounded
    disabled = (*options.disabled_passes, "widen-half")
    plain = replace(options, precision="highest", keep_f32=(), disabled_passes=disabled, cache_dir=None, dump_to=None)
    shapes = {name: array.shape for name, array in feeds.items()}
    program = Compiler(source, "cpu", plain).program(shapes, {}, feeds).program
    results = Executable(program).run([feeds[t.name] for t in program.inputs], 1)
    return {tensor.name: array for tensor, array in zip(program.outputs, results, strict=True)}


class _ChangedSource(Source):
    """A model whose module is changed where factors are rounded."""

    def __init__(self, source: Source, options: CompileOptions) -> None:
        self._source, self._options = source, options
        self.name, self.nodes = source.name, source.nodes

    def signature(self, dims: Mapping[str, int], shapes: Shapes) -> ModelSignature:
        return self._source.signature(dims, shapes)

    def load(self, shapes: Shapes, dims: Mapping[str, int], values: Mapping[str, Array]) -> Imported:
        imported = self._source.load(shapes, dims, values)
        if imported.state:
            raise InputError("precision is validated for models whose runs change no state")
        before = replace(self._options, precision="default", keep_f32=(), stop_after=_BEFORE, dump_to=None)
        optimize(imported.module, "gpu", before)
        LowerContractions(None, self._options.keep_f32).run(imported.module)  # are the names known?
        return self.changed(imported)

    @abstractmethod
    def changed(self, imported: Imported) -> Imported:
        """The model with its change, which may be made in place."""


class _RoundedSource(_ChangedSource):
    """With the rounding put in."""

    def changed(self, imported: Imported) -> Imported:
        LowerContractions(ELEMENTS[self._options.precision], self._options.keep_f32).run(imported.module)
        return imported


_PREFIX = "onnxla_range_"
_WATCHED = ("lhs", "rhs", "overflows", "vanishing", "nonzero")


class _WatchedSource(_ChangedSource):
    """With what is to be known of the factors among the outputs. `products` are those that are watched."""

    products: tuple[Instruction, ...] = ()
    unwatched: tuple[str, ...] = ()

    def changed(self, imported: Imported) -> Imported:
        module, kept = imported.module, frozenset(self._options.keep_f32)
        self.products = tuple(i for i in products_of_f32(module.entry) if kept.isdisjoint(names_of(i)))
        inside = [c for c in program_computations(module) if c is not module.entry]
        names = [name for c in inside for i in products_of_f32(c) for name in names_of(i)]
        self.unwatched = tuple(dict.fromkeys(name for name in names if name not in kept))
        b = Builder()
        numbers = [number for product in self.products for number in self._watched(b, product)]
        root = module.entry.root
        elements = [b.get_tuple_element(root, k) for k in range(len(imported.outputs))]
        entry = Computation(module.entry.name, module.entry.parameters, b.tuple(*elements, *numbers))
        added = [
            TensorSignature(f"{_PREFIX}{k}_{name}", "f32", ()) for k in range(len(self.products)) for name in _WATCHED
        ]
        return replace(imported, module=Module(module.name, entry), outputs=(*imported.outputs, *added), results=())

    def _watched(self, b: Builder, product: Instruction) -> list[Instruction]:
        """Scalars: both largest magnitudes; how many overflow, vanish, and are not 0."""
        precision = self._options.precision
        largest, counts = [], []
        for factor in product.operands:
            size = b.unary("abs", factor)
            finite = b.compare(size, b.full_like(size, math.inf), "LT")
            zero = b.full_like(size, 0.0)
            known = b.select(finite, size, zero)
            largest.append(_reduced(b, "maximum", known))
            over = b.compare(known, b.full_like(size, _first_beyond(precision)), "GE")
            there = b.compare(known, zero, "GT")
            lost = b.and_(there, b.compare(known, b.full_like(size, _VANISHING[precision]), "LE"))
            counts.append([_reduced(b, "add", b.convert(bits, F32)) for bits in (over, lost, there)])
        return [*largest, *(b.add(one, other) for one, other in zip(*counts, strict=True))]


def _reduced(b: Builder, opcode: str, value: Instruction) -> Instruction:
    return b.reduce_by(opcode, value, range(value.tensor_type.rank))


def _first_beyond(precision: str) -> float:
    """The least finite f32 number that is rounded to infinity."""
    if precision == "fp16":
        return 65520.0
    return float(np.array(0x7F7F8000, np.uint32).view(np.float32)) if precision == "bf16" else math.inf
