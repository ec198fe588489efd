"""`explain`: what an import would say about a TensorFlow model, as data and without raising."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from onnxla.config import CompileOptions, Limits
from onnxla.errors import CompileError, Problem
from onnxla.frontends.onnx.signature import Signature
from onnxla.frontends.tensorflow.importer import try_import
from onnxla.frontends.tensorflow.model_file import TensorFlowModel, read_tensorflow
from onnxla.frontends.tensorflow.signature import interface_of
from onnxla.frontends.tensorflow.state import initial_values


@dataclass(frozen=True)
class Report:
    """A model seen before compiling."""

    name: str
    signature: Signature
    signatures: tuple[str, ...]
    """The names of all signatures; none for a graph."""
    version: str
    """TensorFlow's version that wrote it, where the file says."""
    state: tuple[str, ...]
    """Variables that running changes, with their types."""
    operators: Mapping[str, int]
    """How often each operation occurs, functions included, the most frequent first."""
    problems: tuple[Problem, ...]

    @property
    def compiles(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        total = sum(self.operators.values())
        made = f", TensorFlow {self.version}" if self.version else ""
        lines = [f"{self.name}: {total} nodes, {len(self.operators)} operations{made}"]
        lines += [f"  signatures {', '.join(self.signatures)}"] if self.signatures else []
        lines += [f"  input  {spec}" for spec in self.signature.inputs]
        lines += [f"  output {spec}" for spec in self.signature.outputs]
        lines += [f"  state  {variable}" for variable in self.state]
        if self.compiles:
            return "\n".join([*lines, "every node can be imported"])
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        return "\n".join([*lines, count, *(str(p) for p in self.problems)])


def explain(
    source: Any,
    *,
    signature: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    options: CompileOptions | None = None,
    limits: Limits | None = None,
) -> Report:
    """Import the model and report every problem.

    Raises ModelFormatError only where there is no valid model, InputError for names that there are not.
    """
    model = read_tensorflow(source)
    interface = interface_of(model, signature, inputs, outputs)
    state: tuple[str, ...] = ()
    try:
        values = initial_values(model, interface)
        state = tuple(f"{name} {value.dtype}[{','.join(map(str, value.shape))}]" for name, value in values.items())
        problems = try_import(
            model,
            signature=signature,
            inputs=inputs,
            outputs=outputs,
            shapes=shapes,
            dims=dims,
            constants=constants,
            options=options,
            limits=limits,
        ).problems
    except CompileError as error:
        problems = error.problems
    return Report(
        model.name,
        Signature(tuple(p.spec for p in interface.inputs), tuple(p.spec for p in interface.outputs)),
        tuple(sorted(n for n in model.signatures if not n.startswith("__"))),
        model.version,
        state,
        count_operations(model),
        problems,
    )


def count_operations(model: TensorFlowModel) -> dict[str, int]:
    """How often each operation occurs in the graph and its functions, the most frequent first."""
    bodies = (model.body, *model.functions.values())
    return dict(Counter(node.op for body in bodies for node in body.nodes.values()).most_common())
