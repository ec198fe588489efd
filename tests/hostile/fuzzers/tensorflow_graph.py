"""Frozen TensorFlow graphs: bytes to a module, or every reason why not."""

import random
from functools import cache
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError

from onnxla.errors import ModelFormatError, raise_problems
from onnxla.frontends.tensorflow.importer import try_import
from onnxla.frontends.tensorflow.messages import GraphDef
from onnxla.frontends.tensorflow.model_file import read_tensorflow
from onnxla.frontends.tensorflow.signature import interface_of
from onnxla.hlo.verifier import verify
from tests.hostile.fuzzers.atheris_main import main
from tests.hostile.fuzzers.mutation import message_mutator
from tests.hostile.fuzzers.target import LIMITS, OPTIONS, Target

_GRAPHS = Path(__file__).parents[2] / "frontends" / "tensorflow" / "operations"


def run(data: bytes) -> None:
    """Import what nobody reads, with size 2 for every open dimension."""
    try:
        graph = GraphDef.FromString(data)
    except DecodeError as error:
        raise ModelFormatError(str(error)) from error
    model = read_tensorflow(graph)
    dims: dict[str, int] = {}
    shapes = {}
    for port in interface_of(model).inputs:
        if port.spec.shape is None:
            shapes[port.spec.name] = (2, 2)
        else:
            dims.update({n: 2 for n in port.spec.shape if isinstance(n, str)})
    result = try_import(model, shapes=shapes, dims=dims, options=OPTIONS, limits=LIMITS)
    raise_problems(result.problems)
    assert result.model is not None
    verify(result.model.module)


@cache
def seeds() -> list[bytes]:
    found = [bytes(np.load(file)["graph"].tobytes()) for file in sorted(_GRAPHS.glob("*.npz"))]
    return [data for data in found if len(data) < 12_000]


_mutate_message = message_mutator(GraphDef)


def mutate(data: bytes, rng: random.Random) -> bytes:
    return _mutate_message(data, rng)


TARGET = Target("tensorflow_graph", seeds, run, mutate)

if __name__ == "__main__":
    main(TARGET)
