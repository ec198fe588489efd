"""`load_compiled()`: from an artifact to a model that runs."""

import os

from onnxla.config import RuntimeSettings
from onnxla.errors import DeviceError
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.runtime.consistency import require_consistent
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.streams import gpu_number


def load_compiled(
    path: str | os.PathLike[str],
    *,
    num_threads: int | None = None,
    verify_weights: str | None = None,
    device: str | None = None,
) -> CompiledModel:
    """Load an artifact. Neither onnx nor a compiler is needed; weights stay in the file, mapped read-only.

    Loading runs the code in the file: load only what you would run. Raises ArtifactError for a file that is damaged,
    foreign, of another format version, or made for another machine, and DeviceError for one with parts in onnxruntime
    where that is not installed. `verify_weights` ("fast", "full", "off") is the knob of that name. `device` is where
    it runs: `cpu`, `cuda`, `cuda:1`; by default where its code is for, and with code for both the first GPU, if there
    is one that fits. Raises DeviceError where there is no code for `device`; the GPU itself is looked for when the
    model first runs.
    """
    settings = RuntimeSettings.from_environment(
        **({} if verify_weights is None else {"verify_weights": verify_weights})
    )
    artifact = read_artifact(path, verify_weights=settings.verify_weights)
    if artifact.mixed:
        if device is not None and gpu_number(device) is not None:
            raise DeviceError(f"device={device!r}: a model with parts in onnxruntime runs on the CPU")
        from onnxla.runtime.mixed_model import loaded_mixed

        mixed = loaded_mixed(artifact, num_threads)
        mixed.link()
        return mixed
    require_consistent(artifact.signature, artifact.programs, artifact.state)
    inputs = {t.name for t in artifact.signature.inputs}
    fixed = {name: value for name, value in artifact.programs[0].constants.items() if name not in inputs}
    model = CompiledModel(
        artifact.signature,
        artifact.programs,
        constants=fixed,
        num_threads=num_threads,
        about=artifact.about,
        state=artifact.state,
        device=device,
    )
    model.link()
    return model
