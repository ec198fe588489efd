"""Gradient of ai.onnx.preview.training: reverse-mode derivatives of what lies between two values of the graph."""

from onnxla.errors import Problem, SourceNode, UnsupportedOpError
from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.training import TRAINING
from onnxla.frontends.problems import ProblemFound
from onnxla.hlo.builder import Builder
from onnxla.hlo.derivatives.reverse import UnderivableError, derivatives
from onnxla.hlo.module import Instruction


@onnx_op("Gradient", domain=TRAINING)
def gradient(node: NodeView, b: Builder) -> list[Instruction]:
    """d(sum of y)/dx for each x of `xs`; the inputs are the values of `xs`, then of `zs`, which count as constant.

    A problem for each node on the way that has no derivative.
    """
    xs, name = node.strings("xs"), node.string("y")
    y, points = node.host.named(name), node.inputs()
    if not isinstance(y, Instruction):
        node.unsupported(
            f"{name}, which is to be derived, is not computed before this node", "let y name a tensor that is"
        )
    for x, point in zip([*xs, *node.strings("zs", ())], points, strict=False):
        if node.host.named(x) is not point:
            node.unsupported(f"the derivative is wanted at another value than {x}'s own", f"give {x} as the input")
    try:
        return derivatives(b, y, points[: len(xs)])
    except UnderivableError as error:
        causes: dict[SourceNode | None, list[str]] = {}
        for instruction, cause in error.found:
            causes.setdefault(instruction.source, []).append(cause)
        problems = [
            Problem(
                UnsupportedOpError,
                "; ".join(dict.fromkeys(found)),
                source,
                (("wanted", f"by {node.source}"),),
                "export the gradient in plain operators, or derive by values behind this node",
            )
            for source, found in causes.items()
        ]
        node.host.note_problems(problems[:-1])
        raise ProblemFound(problems[-1]) from None
