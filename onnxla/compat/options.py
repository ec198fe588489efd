"""SessionOptions and RunOptions: what has a meaning here is honoured, what has none is accepted where it is harmless,
and what would change results or safety is refused. docs/onnxruntime-drop-in.md has the table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from onnxla.compat.enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from onnxla.compat.errors import NotImplemented, compat_error
from onnxla.compat.ort_value import OrtValue

FALLBACK = "onnxla.fallback"
"""Session configuration entry: `onnxruntime` leaves to it what cannot be compiled (`compile(fallback=)`)."""
EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
NO_CPU_FALLBACK = "session.disable_cpu_ep_fallback"
_REFUSED_ENTRIES = {
    ("session.load_model_format", "ORT"): "onnxruntime's own file format is not read; give the ONNX model",
    ("ep.context_enable", "1"): "no EPContext model is written; CompiledModel.save writes an artifact",
}


class _Options:
    """Attributes that are checked as they are set, as onnxruntime's are; no others can be."""

    def __setattr__(self, name: str, value: Any) -> None:
        default = getattr(type(self), name, None)
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        if default is None or callable(default):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        kind = type(default)
        if kind is int and hasattr(value, "__index__"):
            value = int(value)
        if not isinstance(value, kind):
            raise TypeError(f"{type(self).__name__}.{name} is {kind.__name__}, not {value!r}")
        object.__setattr__(self, name, value)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is a str, not {value!r}")
    return value


class SessionOptions(_Options):
    """How a session is made. Raises TypeError for values of another type, AttributeError for names there are not."""

    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    """Every run writes its steps into the file that `InferenceSession.end_profiling` names."""
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    inter_op_num_threads: int = 0
    intra_op_num_threads: int = 0
    """Most threads of a run; 0: the CPUs that the process may use."""
    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    """Results never depend on the number of threads here."""
    use_per_session_threads: bool = True

    def __init__(self) -> None:
        self._dims: dict[str, int] = {}
        self._denotations: dict[str, int] = {}
        self._entries: dict[str, str] = {}
        self._initializers: dict[str, OrtValue] = {}
        self._providers: dict[str, dict[str, str]] = {}

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Give a symbolic dimension of the inputs its size."""
        self._dims[_text(dim_name, "dim_name")] = int(dim_value)

    def add_free_dimension_override_by_denotation(self, denotation: str, dim_value: int) -> None:
        """Give the dimensions of the inputs with this denotation, such as `DATA_BATCH`, their size."""
        self._denotations[_text(denotation, "denotation")] = int(dim_value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Any entry is kept; those that docs/onnxruntime-drop-in.md names have a meaning, or are refused by the
        session."""
        self._entries[_text(key, "key")] = _text(value, "value")

    def get_session_config_entry(self, key: str) -> str:
        """Raises RuntimeError for an entry that nobody added."""
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """The value of an initializer of the model, in place of the one in it. It is copied when a session is made."""
        if not isinstance(value, OrtValue):
            raise TypeError(f"value is an OrtValue, not {type(value).__name__}")
        self._initializers[_text(name, "name")] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Values of initializers whose data the model does not hold."""
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_provider(self, provider_name: str, options: Mapping[str, Any]) -> None:
        """A provider to use where the session is not given any."""
        self._providers[_text(provider_name, "provider_name")] = {str(k): str(v) for k, v in options.items()}

    def has_providers(self) -> bool:
        """Whether `add_provider` was called."""
        return bool(self._providers)

    def register_custom_ops_library(self, path: str) -> None:
        """Refused: kernels written for onnxruntime cannot be compiled."""
        raise compat_error(
            NotImplemented, f"custom operators in {path}: onnxla compiles models and loads no kernels of others"
        )

    def set_provider_selection_policy(self, policy: object) -> None:
        """Refused: name the providers."""
        raise compat_error(NotImplemented, "provider selection policies; name the providers instead")


def require_supported(options: SessionOptions) -> None:
    """Raise NotImplemented that lists every option which may not be passed over."""
    problems = [
        f"{key}={value!r}: {reason}"
        for (key, value), reason in _REFUSED_ENTRIES.items()
        if options._entries.get(key) == value
    ]
    if options.optimized_model_filepath:
        problems.append("optimized_model_filepath: no such model is made; `onnxla compile` writes an artifact")
    fallback = options._entries.get(FALLBACK, "")
    if fallback not in ("", "onnxruntime"):
        problems.append(f"{FALLBACK}={fallback!r}: choose 'onnxruntime', or leave it out")
    if fallback and options.enable_profiling:
        problems.append(f"enable_profiling with {FALLBACK}: a profile of parts in onnxruntime is not taken")
    if problems:
        raise compat_error(NotImplemented, "\n".join(problems))


class RunOptions(_Options):
    """How one run is made."""

    log_severity_level: int = -1
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    """A run that is given this does not begin; one that has begun goes on to its end."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Any entry is kept; `memory.enable_memory_arena_shrinkage` gives memory back after the run."""
        self._entries[_text(key, "key")] = _text(value, "value")

    def get_run_config_entry(self, key: str) -> str:
        """Raises RuntimeError for an entry that nobody added."""
        if key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_active_adapter(self, adapter: object) -> None:
        """Refused: adapters replace weights, which are compiled in."""
        raise compat_error(NotImplemented, "LoRA adapters: weights are compiled into the code; compile a merged model")
