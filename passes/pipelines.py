"""The passes of each target in order, a reason beside each line, and the constraints between them."""

from collections.abc import Callable, Sequence

from onnxla.config import GPU_PRECISIONS, CompileOptions
from onnxla.errors import InputError, InternalError
from onnxla.hlo.module import Module
from onnxla.hlo.types import BF16, F16
from onnxla.passes.common_subexpressions import MergeCommonSubexpressions
from onnxla.passes.complex_numbers import SplitComplexNumbers
from onnxla.passes.constant_folding import FoldConstants
from onnxla.passes.dilated_convolutions import SplitDilatedConvolutions
from onnxla.passes.expansion import ExpandOperations
from onnxla.passes.fuse_attention import FuseAttention
from onnxla.passes.fusion import FuseInstructions
from onnxla.passes.inline_calls import InlineCalls
from onnxla.passes.integer_contractions import IntegerContractions
from onnxla.passes.layout_assignment import AssignLayouts
from onnxla.passes.library_products import LibraryProducts
from onnxla.passes.lower_contractions import LowerContractions
from onnxla.passes.merge_products import MergeProducts
from onnxla.passes.merge_scales import MergeScales
from onnxla.passes.pass_base import Pass
from onnxla.passes.pipeline import Pipeline, PipelineReport
from onnxla.passes.simplification import Simplify
from onnxla.passes.simplify_loops import SimplifyLoops
from onnxla.passes.split_depth import SplitDepth, multiprocessors_of
from onnxla.passes.split_reductions import SplitReductions
from onnxla.passes.tabulate import Tabulate
from onnxla.passes.weights_along_depth import WeightsAlongDepth
from onnxla.passes.widen_half import WidenHalf

CONSTRAINTS = (
    ("inline-calls", "simplify", "rules do not look into calls"),
    ("integer-contractions", "fold-constants", "folding would turn quantised weights into floats"),
    ("integer-contractions", "lower-contractions", "quantised weights are no factors to round"),
    ("simplify", "assign-layouts", "padding and scales belong into convolutions in the model's own order"),
    ("assign-layouts", "fuse-instructions", "fusions are closed to every other pass"),
    ("simplify", "fuse-attention", "attention is found in one spelling"),
    ("integer-contractions", "merge-scales", "sums have no integers before"),
    ("fold-constants", "merge-scales", "biases of quantised models are constants by then"),
    ("fold-constants", "merge-products", "weights and biases are constants by then"),
    ("merge-products", "fuse-attention", "fusions are closed to every other pass"),
    ("assign-layouts", "tabulate", "layouts pass through arithmetic, and not through tables"),
    ("merge-common-subexpressions", "fuse-instructions", "equal values in different kernels would be computed twice"),
)
"""(earlier, later, why): the first `later` comes after an `earlier`."""


def check_order(passes: Sequence[Pass]) -> None:
    """Raise InternalError unless the passes keep the constraints and fusion is last."""
    names = [p.name for p in passes]
    for earlier, later, reason in CONSTRAINTS:
        if later in names and earlier not in names[: names.index(later)]:
            raise InternalError(f"{earlier} must run before {later}: {reason}")
    if names[-1] != "fuse-instructions":
        raise InternalError("nothing may run after fuse-instructions")


def pipeline_for(target_kind: str, options: CompileOptions) -> Pipeline:
    """The passes for `cpu` or `gpu`."""
    if target_kind not in ("cpu", "gpu"):
        raise InputError(f"no passes for the target {target_kind!r}; there are cpu and gpu")
    # before simplification, which would merge conversions and then cannot tell those that are meant
    widening: list[Pass] = [WidenHalf()] if target_kind == "cpu" else []
    # after simplification, which would make one reduction of the two; GPUs have schedules of their own for this
    splitting: list[Pass] = [SplitReductions()] if target_kind == "cpu" else []
    # GPUs compute faster than they look up
    tables: list[Pass] = [Tabulate()] if target_kind == "cpu" else []
    factors = {"fp16": F16, "bf16": BF16}.get(options.precision)
    rounds = options.precision in GPU_PRECISIONS  # tf32 happens in kernels: the pass only knows what may be kept
    lowering: list[Pass] = [LowerContractions(factors, options.keep_f32)] if rounds else []
    # for GPUs only: their matrix units take bytes in along depth; their products read parts of a wider one in place
    merging: list[Pass] = [WeightsAlongDepth(), MergeProducts(options.keep_f32)] if target_kind == "gpu" else []
    # for GPUs only: CPUs keep scores in their caches; with tf32 products of f32 have matrix units, attention has none
    attention: list[Pass] = [FuseAttention(of_f32=options.precision != "tf32")] if target_kind == "gpu" else []
    # for GPUs only: a library of their maker may compute them
    library: list[Pass] = [LibraryProducts()] if target_kind == "gpu" and options.gpu_library else []
    # for GPUs only: CPUs share out rows and columns, and have few cores
    depth: list[Pass] = [SplitDepth(multiprocessors_of(options.target_gpu))] if target_kind == "gpu" else []
    passes: list[Pass] = [
        InlineCalls(),  # first: functions of the model are no borders for anything
        ExpandOperations(),  # so that all that follows, and codegen, has fewer operations to know
        SplitComplexNumbers(),  # after expansion, which makes complex values
        *widening,
        Simplify(options),  # before folding, which then meets fewer and smaller instructions
        SimplifyLoops(),  # weights stand in loop bodies before anything asks whether they are constant
        IntegerContractions(),  # before folding, which would turn quantised weights into floats
        *lowering,  # before folding, which rounds the weights
        FoldConstants(options),  # what simplification left between constants, weights it scaled among it
        MergeCommonSubexpressions(),  # after folding, which makes equal constants
        MergeScales(),  # after folding, which makes constants of scales and biases
        Simplify(options),  # constants that folding made feed new rules
        AssignLayouts(),  # when padding and scales are inside the convolutions already
        SplitDilatedConvolutions(),  # after layouts, whose transposes do not pass the interleaving
        Simplify(options),  # transposes of broadcasts, reshapes and reductions that layouts left
        FoldConstants(options),  # the weights in their new order
        MergeCommonSubexpressions(),  # equal transposes of one value
        SplitComplexNumbers(),  # complex constants that folding made
        *splitting,
        *tables,  # after layouts, which do not pass through them
        *merging,  # when weights and biases are constants, and transposes are where they will stay
        *attention,  # before the rest of fusion, which would put softmax into a kernel of its own
        *library,  # after attention, whose products no library sees; before depth, which is the library's business
        *depth,  # after attention, which is found in products as they were
        FuseInstructions(on_gpu=target_kind == "gpu"),  # last: every pass before it sees plain instructions
    ]
    check_order(passes)
    return Pipeline(passes, options, f"{target_kind} pipeline")


def optimize(
    module: Module,
    target_kind: str = "cpu",
    options: CompileOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> PipelineReport:
    """Rewrite `module` in place into kernels for `cpu` or `gpu`. It computes what it computed before."""
    return pipeline_for(target_kind, options or CompileOptions()).run(module, progress)
