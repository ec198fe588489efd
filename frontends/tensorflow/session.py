"""What all graphs of one import share: the model, the problems found so far, known values, limits."""

from onnxla.config import CompileOptions, Limits
from onnxla.errors import Problem, ResourceLimitError
from onnxla.frontends.tensorflow.graph import Node
from onnxla.frontends.tensorflow.model_file import TensorFlowModel
from onnxla.hlo.constant_evaluation import ConstantEvaluator
from onnxla.hlo.module import Instruction


class Session:
    """The state of one import."""

    def __init__(self, model: TensorFlowModel, options: CompileOptions, limits: Limits) -> None:
        self.model = model
        self.limits = limits
        self.evaluator = ConstantEvaluator(options.folding_bytes, options.folding_seconds)
        self.problems: list[Problem] = []
        self.input_names: dict[Instruction, str] = {}
        """The graph inputs by parameter of the entry computation."""
        self.origins: dict[Instruction, Instruction] = {}
        """Where a parameter of a body gets its value: an instruction of the computation around."""
        self.varying: dict[Instruction, str] = {}
        """Parameters of loop bodies that change from one iteration to the next, and the words for it."""
        self.imported_nodes = 0

    def count_node(self, node: Node) -> None:
        """Raise ResourceLimitError once functions and unrolled loops have grown the model beyond the limit."""
        self.imported_nodes += 1
        if self.imported_nodes > self.limits.nodes:
            raise ResourceLimitError(
                f"the model has more than {self.limits.nodes} nodes with its functions and loops written out "
                f"(at {node.op} {node.name}); Limits(nodes=...) allows more"
            )
