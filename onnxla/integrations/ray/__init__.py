"""onnxla on Ray: a Serve deployment and a Data actor that load a compiled model once for each worker.

    shared = onnxla.integrations.ray.share("model.onnx", max_batch_size=16)
    serve.run(onnxla.integrations.ray.deployment(shared))
    rows.map_batches(OnnxlaPredictor, fn_constructor_args=(shared,), batch_size=16, concurrency=4)

The artifact goes through Ray's object store once, and lies once on each node, mapped by all workers there. Needs the
extra `ray`. docs/serving-on-ray.md tells users how it behaves.
"""

from onnxla.integrations.ray.deployment import OnnxlaReplica, deployment
from onnxla.integrations.ray.predictor import OnnxlaPredictor
from onnxla.integrations.ray.shared_model import SharedModel, share

__all__ = ["OnnxlaPredictor", "OnnxlaReplica", "SharedModel", "deployment", "share"]
