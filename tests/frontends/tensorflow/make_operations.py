"""Makes `operations/*.npz`: for each case a frozen GraphDef with TensorFlow's own inputs and outputs.

Run by hand, in an environment with TensorFlow (2.21 made what is here):

    python -m tests.frontends.tensorflow.make_operations [NAME ...]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
from tests.frontends.tensorflow.operation_cases import all_cases

FOLDER = Path(__file__).parent / "operations"
CASES = all_cases()


def save(name: str) -> None:
    function, inputs, v1 = CASES[name]
    names = [f"x{k}" for k in range(len(inputs))]
    specs = [tf.TensorSpec(x.shape, x.dtype, name=n) for n, x in zip(names, inputs, strict=True)]

    @tf.function(input_signature=specs, autograph=True)
    def traced(*xs: tf.Tensor) -> dict[str, tf.Tensor]:
        flat = tf.nest.flatten(function(*xs))
        return {f"y{k:02d}": tf.identity(y) for k, y in enumerate(flat)}

    concrete = traced.get_concrete_function()
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=v1)
    graph = frozen.graph.as_graph_def()
    for node in graph.node:
        for key in [k for k in node.attr if k.startswith("_")]:
            del node.attr[key]
    results = concrete(*[tf.constant(x) for x in inputs])
    arrays: dict[str, Any] = {f"in:{n}": x for n, x in zip(names, inputs, strict=True)}
    order = sorted(results)
    arrays |= {f"out:{k}": results[k].numpy() for k in order}
    arrays["graph"] = np.frombuffer(graph.SerializeToString(deterministic=True), np.uint8)
    arrays["outputs"] = np.array([t.name for t in frozen.outputs])
    arrays["inputs"] = np.array([t.name for t in frozen.inputs if t.dtype != tf.resource])
    np.savez_compressed(FOLDER / f"{name}.npz", **arrays)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or CASES:
        try:
            save(wanted)
        except Exception as error:  # one case must not stop the others
            print(f"{wanted}: {type(error).__name__}: {str(error)[-250:]}")
