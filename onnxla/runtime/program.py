"""What the compiler hands to the runtime, and what an artifact stores: native code, weights, sizes.

A `Program` is one specialisation of a model: static shapes, one native entry. Nothing here knows HLO or LLVM.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxla.runtime.padding import Padding
from onnxla.runtime.results import Result
from onnxla.runtime.tensors import Array, TensorSignature

GPU_TRIPLE = "nvptx64-nvidia-cuda"
"""LLVM's name of NVIDIA's platform, by which a `Program` for a GPU is known."""


@dataclass(frozen=True)
class Step:
    """One step of the plan, a row of the profile. The steps inside a loop or branch follow it, one deeper."""

    name: str
    op: str
    source: str
    """The node of the user's model it comes from."""
    bytes: int = 0
    """Bytes it reads and writes."""
    flops: int = 0
    """Floating-point operations; 0 where nobody counted."""
    depth: int = 0
    """How many loops and branches it is inside of."""
    kernel: str = ""
    """The symbol of its code, where it is a kernel: equal code has one symbol."""
    tasks: int = 0
    """Parts of a kernel that may run at the same time; on a GPU its blocks."""
    effort: int = 0
    """All that a core does in it, as floating-point operations of multiply-adds that would take as long."""
    weight_bytes: int = 0
    """Those of its bytes that are weights."""
    also: tuple[str, ...] = ()
    """Further nodes of the model that are computed in it."""


@dataclass(frozen=True)
class Program:
    """Native code of one specialisation and all it needs to run."""

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    objects: tuple[bytes, ...] = field(repr=False)
    """Object files; one of them defines `onnxla_run`."""
    thread_pool: bytes = field(repr=False)
    """Object code of the thread pool."""
    weights: Array = field(repr=False)
    """Packed weights: uint8, read-only, the base aligned to 64 bytes; may be mapped from a file."""
    arena_bytes: int
    steps: tuple[Step, ...]
    """In the order they run, those inside loops and branches behind them."""
    triple: str
    """LLVM's name of the platform the objects are for."""
    cpu: str
    features: tuple[str, ...]
    """CPU features without which the code must not run."""
    state: tuple[TensorSignature, ...] = ()
    """The variables that it changes: the native code takes them after the inputs, and gives them after the outputs."""
    results: tuple[Result, ...] = ()
    """How the model's outputs are made of `outputs`; empty where they are the same."""
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Inputs of strings: native code takes their places in this list, or its length for those that are not there."""
    constants: Mapping[str, Array] = field(default_factory=dict)
    """Values of inputs of the model that this program was made for; they are no inputs of it."""
    padding: Padding | None = None
    """How it takes fewer rows than it was made for; None where it does not."""
    intermediate_bytes: int = 0
    """Sum of the sizes of all intermediate values, for comparison with the arena."""
    instruction_count: int = 0
    """HLO instructions of the entry after the passes."""
    kernel_count: int = 0
    """Different kernels."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """What the compiler made on the way, by stage: `hlo` as imported, `optimized_hlo`, `plan`, ..."""
