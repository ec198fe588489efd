"""`explain`: what an import would say about a TensorFlow model, as data and without raising."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from onnxla.config import CompileOptions, Limits
from onnxla.errors import CompileError
from onnxla.frontends.model_report import ModelReport
from onnxla.frontends.signature import Signature
from onnxla.frontends.tensorflow.importer import try_import
from onnxla.frontends.tensorflow.model_file import TensorFlowModel, read_tensorflow
from onnxla.frontends.tensorflow.signature import interface_of
from onnxla.frontends.tensorflow.state import initial_values


@dataclass(frozen=True)
class Report(ModelReport):
    """A TensorFlow model; its operations include those of functions."""

    signatures: tuple[str, ...]
    """The names of all signatures; none for a graph."""
    version: str
    """TensorFlow's version that wrote it, where the file says."""
    state: tuple[str, ...]
    """Variables that running changes, with their types."""

    def heading(self) -> str:
        made = f", TensorFlow {self.version}" if self.version else ""
        return f"{self.name}: {self.total} nodes, {len(self.operators)} operations{made}"

    def facts(self) -> Mapping[str, object]:
        return {"tensorflow": self.version, "signatures": self.signatures, "state": self.state}

    def details(self) -> list[str]:
        lines = [f"  state  {variable}" for variable in self.state]
        return [*lines, f"  signatures {', '.join(self.signatures)}"] if self.signatures else lines


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
        count_operations(model),
        problems,
        tuple(sorted(n for n in model.signatures if not n.startswith("__"))),
        model.version,
        state,
    )


def count_operations(model: TensorFlowModel) -> dict[str, int]:
    """How often each operation occurs in the graph and its functions, the most frequent first."""
    bodies = (model.body, *model.functions.values())
    return dict(Counter(node.op for body in bodies for node in body.nodes.values()).most_common())
