"""All rule tables together, applied until none fires."""

from onnxla.config import CompileOptions
from onnxla.passes.rewrite import RewritePass
from onnxla.passes.simplify.arithmetic import ARITHMETIC
from onnxla.passes.simplify.contraction import CONTRACTION
from onnxla.passes.simplify.control_flow import CONTROL_FLOW
from onnxla.passes.simplify.convert import CONVERT
from onnxla.passes.simplify.indexing import INDEXING
from onnxla.passes.simplify.pieces import PIECES
from onnxla.passes.simplify.reduction import REDUCTION
from onnxla.passes.simplify.selection import SELECTION
from onnxla.passes.simplify.shape import SHAPE

TABLES = (CONTROL_FLOW, SHAPE, PIECES, CONVERT, SELECTION, INDEXING, REDUCTION, CONTRACTION, ARITHMETIC)


class Simplify(RewritePass):
    """Rewrite with every rule table to a fixed point."""

    name = "simplify"

    def __init__(self, options: CompileOptions) -> None:
        super().__init__(TABLES, fast_math=options.fast_math)
