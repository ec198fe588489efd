"""A model in onnxruntime behind our own server: what `tests.bench.serving` puts beside compiled code."""

from collections.abc import Hashable, Sequence
from types import SimpleNamespace
from typing import Any

import onnxruntime

from onnxla.runtime.signature import ModelSignature, ModelTensor
from onnxla.runtime.thread_pool import default_threads
from onnxla.serving.compiling import CompileService
from onnxla.serving.interface import Arranged, Interface
from onnxla.serving.model_config import ModelConfig
from onnxla.serving.repository import VersionFiles
from onnxla.serving.requests import Duration
from onnxla.serving.row_plans import assumed_rows, find_batch
from onnxla.serving.variant import Variant


class OnnxruntimeVariant(Variant):
    """A session that takes any shapes."""

    def __init__(self, session: Any, rows: Any, artifact: Any) -> None:
        names = [one.name for one in session.get_inputs()]
        model = SimpleNamespace(
            programs=(), run_in_order=lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))
        )
        super().__init__(model, rows, artifact)  # type: ignore[arg-type]


class OnnxruntimeCode:
    """`Code` of the engine: one session, with every number of rows up to `max_batch_size`."""

    has_state, cache_hits = False, 0

    def __init__(self, files: VersionFiles, config: ModelConfig) -> None:
        self.compiles = Duration()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = config.num_threads or default_threads()
        session = onnxruntime.InferenceSession(str(files.path), options, providers=["CPUExecutionProvider"])
        signature = ModelSignature(_tensors(session.get_inputs()), _tensors(session.get_outputs()))
        plan, rows = None, {}
        if config.max_batch_size:
            batch = find_batch(signature, config)
            plan = assumed_rows(signature, batch, range(1, config.max_batch_size + 1))
            rows = dict(batch.inputs)
        self.interface = Interface(signature, rows, config.max_batch_size)
        self._variant = OnnxruntimeVariant(session, plan, files.path)

    def find(self, given: Arranged) -> Variant | None:
        return self._variant

    def key(self, given: Arranged) -> Hashable:
        return None

    async def make(self, given: Arranged) -> Variant:
        return self._variant

    def variants(self) -> Sequence[Variant]:
        return [self._variant]

    def close(self) -> None:
        pass


def _tensors(found: Sequence[Any]) -> tuple[ModelTensor, ...]:
    return tuple(ModelTensor(one.name, one.type, list(one.shape)) for one in found)


async def load_in_onnxruntime(
    files: VersionFiles, config: ModelConfig, compiling: CompileService, keep_artifacts: bool
) -> OnnxruntimeCode:
    """In the place of `onnxla.serving.code.load_code`."""
    return OnnxruntimeCode(files, config)
