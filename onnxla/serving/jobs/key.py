"""The key of a whole artifact: everything that decides its bytes, known before the model is read."""

from onnxla.codegen.cpu.target import host_target
from onnxla.codegen.gpu.compile_nvrtc import nvrtc_version
from onnxla.config import Limits
from onnxla.errors import DeviceError
from onnxla.makers import compiler_digest, libraries, version_of
from onnxla.runtime.artifact import FORMAT_VERSION
from onnxla.runtime.cache import CacheKey
from onnxla.serving.jobs.request import CompileRequest
from onnxla.version import __version__


def artifact_key(model: str, name: str, wanted: CompileRequest) -> CacheKey:
    """The key of what comes of the model whose upload has the SHA-256 digest `model`, under the file name `name`."""
    parts = {f"wanted {part}": text for part, text in wanted.key_parts().items()}
    return CacheKey(
        {
            "model": model,
            "name": name,
            **parts,
            "limits": repr(Limits.from_environment()),
            "host": str(host_target()) if wanted.compile_options().target_cpu == "host" else "any",
            "NVRTC": _nvrtc() if "gpu" in wanted.target else "none",
            "onnxruntime": version_of("onnxruntime") if wanted.fallback is not None else "none",
            "version": f"onnxla {__version__}, format {FORMAT_VERSION}",
            "libraries": libraries(),
            "compiler": compiler_digest(),
        }
    )


def _nvrtc() -> str:
    try:
        return nvrtc_version()
    except DeviceError:
        return "none"
