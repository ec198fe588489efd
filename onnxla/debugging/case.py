"""A model with inputs on which it should give known outputs: what a fault is shown by."""

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import ModelProto

from onnxla.debugging.model_part import whole_proto
from onnxla.debugging.parts import flat_outputs
from onnxla.debugging.trial import Outcome, Settings, try_model
from onnxla.errors import InputError
from onnxla.frontends.onnx.model_file import OnnxModel
from onnxla.peers.onnxruntime_peer import OnnxruntimePeer
from onnxla.runtime.tensors import Array
from onnxla.runtime.thread_pool import default_threads


@dataclass(frozen=True)
class Case:
    """A model whose inputs all have one shape, arrays for them, and onnxruntime's results."""

    model: OnnxModel
    feeds: Mapping[str, Array]
    expected: Mapping[str, Array]

    def outcome(self, settings: Settings) -> Outcome:
        return try_model(self.model, self.feeds, self.expected, settings)


def judged(proto: ModelProto, feeds: Mapping[str, Array], threads: int | None) -> Case:
    """A case of a model with its weights inside. Raises InputError where onnxruntime refuses it."""
    try:
        text = proto.SerializeToString()
    except Exception as error:  # protobuf's limit of 2 GB, which has no type of its own
        raise InputError(f"the model is too large to be a file of its own: {error}") from error
    expected = flat_outputs(OnnxruntimePeer(text, threads or default_threads()).run(feeds))
    return Case(OnnxModel(proto, proto.graph.name or "model"), feeds, expected)


def alone(case: Case, threads: int | None) -> Case:
    """The case with its weights inside, judged anew: as it will be when it is run from its file."""
    return judged(whole_proto(case.model), case.feeds, threads)
