"""Every knob of onnxla: name, environment variable, type, default and one sentence.

`CompileOptions` is what `compile(options=...)` takes and what every stage of the compiler reads; `RuntimeSettings` is
what a compiled model reads when it is loaded; `Limits` bound what a model, text or artifact from a stranger may ask
for; `ChildLimits` bound what a compile in a process of its own may take. `table()` prints all of them for the
documentation.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Self

from onnxla.errors import InputError
from onnxla.given import number, whole_number

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


PRECISIONS = ("default", "highest", "fp32", "tf32", "bf16", "fp16")
GPU_PRECISIONS = ("tf32", "bf16", "fp16")


def _boolean(text: str) -> bool:
    if text.lower() not in _TRUE + _FALSE:
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() in _TRUE


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _checked(name: str, value: Any, read: Callable[[str], Any]) -> Any:
    """A value that was given in Python for a knob whose text `read` reads."""
    if read is int:
        return whole_number(value, name, 0)
    if read is float:
        return number(value, name)
    if read is _boolean:
        if type(value).__name__ not in ("bool", "bool_"):
            raise InputError(f"{name}={value!r}: choose True or False")
        return bool(value)
    if read is str and isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if read is _names and isinstance(value, (tuple, list)) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise InputError(f"{name}={value!r}: {'a text' if read is str else 'a list of names'} is needed")


def _knob(default: Any, read: Callable[[str], Any], about: str, variable: str = "") -> Any:
    return field(default=default, metadata={"read": read, "about": about, "variable": variable})


@dataclass(frozen=True)
class Knob:
    """One row of the documentation of the knobs."""

    name: str
    variable: str
    default: object
    about: str


class _Settings:
    """A frozen dataclass whose fields are knobs."""

    @classmethod
    def from_environment(cls, **overrides: Any) -> Self:
        """The defaults, then the environment, then `overrides`. Raises InputError for text that does not fit a knob."""
        values: dict[str, Any] = {}
        for knob in fields(cls):  # type: ignore[arg-type]
            text = os.environ.get(knob.metadata["variable"]) if knob.metadata["variable"] else None
            if text is not None:
                values[knob.name] = cls._read(knob.metadata, text)
        return cls(**{**values, **overrides})

    def __post_init__(self) -> None:
        """Every value is of its knob's kind, whole numbers and texts as Python's own. Raises InputError."""
        for knob in fields(self):  # type: ignore[arg-type]
            value = getattr(self, knob.name)
            if value is not None or knob.default is not None:
                object.__setattr__(self, knob.name, _checked(knob.name, value, knob.metadata["read"]))

    @classmethod
    def describe(cls) -> list[Knob]:
        return [
            Knob(k.name, k.metadata["variable"], k.default, k.metadata["about"])
            for k in fields(cls)  # type: ignore[arg-type]
        ]

    @staticmethod
    def _read(metadata: Any, text: str) -> Any:
        try:
            return metadata["read"](text)
        except ValueError as error:
            raise InputError(f"{metadata['variable']}={text!r}: {error}") from error


@dataclass(frozen=True)
class CompileOptions(_Settings):
    """What decides the code that is made. Equal options and equal models give equal artifacts."""

    fast_math: bool = _knob(False, _boolean, "Allow rewrites that change values beyond rounding.", "ONNXLA_FAST_MATH")
    precision: str = _knob(
        "default",
        str,
        "`highest` forbids algorithms that trade error for speed, such as Winograd. For `target='gpu'`, `fp16`, `bf16` "
        "and `tf32` round the factors of products of f32 numbers, not their sums; `fp32` rounds nothing.",
        "ONNXLA_PRECISION",
    )
    keep_f32: tuple[str, ...] = _knob(
        (),
        _names,
        "Nodes whose products of f32 numbers `precision` leaves alone, separated by commas.",
        "ONNXLA_KEEP_F32",
    )
    opt_level: int = _knob(2, int, "LLVM's optimization level for kernels, 0 to 3.", "ONNXLA_OPT_LEVEL")
    target_cpu: str = _knob(
        "host",
        str,
        "CPU to compile for: `host`, `x86-64`, `x86-64-v2`, `-v3`, `-v4`, `generic-aarch64`, "
        "`generic-riscv64` or `wasm32`; or another machine's, as `onnxla doctor --json` prints it (`target_cpu`).",
        "ONNXLA_TARGET_CPU",
    )
    target_gpu: str = _knob(
        "sm_80",
        str,
        "Architectures that `target='gpu'` is for, separated by commas: machine code for each, PTX of the lowest.",
        "ONNXLA_TARGET_GPU",
    )
    gpu_library: str = _knob(
        "",
        str,
        "`cublaslt`: large products are made for cuBLASLt, which computes them where it is installed "
        "(`onnxla[cublas]`); elsewhere onnxla's own kernels do, which are made as well.",
        "ONNXLA_GPU_LIBRARY",
    )
    disabled_passes: tuple[str, ...] = _knob(
        (), _names, "Names of passes to leave out, separated by commas.", "ONNXLA_DISABLED_PASSES"
    )
    stop_after: str | None = _knob(None, str, "Stop the pass pipeline after this pass.", "ONNXLA_STOP_AFTER")
    pad_to_bucket: str = _knob(
        "",
        str,
        "A symbolic dimension with several sizes, such as `batch`: smaller inputs are padded to the next of them. "
        "Refused unless it is proven that rows along it do not depend on one another.",
        "ONNXLA_PAD_TO_BUCKET",
    )
    verify: bool = _knob(True, _boolean, "Verify the module after every pass that changed it.", "ONNXLA_VERIFY")
    folding_bytes: int = _knob(
        256 << 20, int, "Largest sum of the results of constant folding, in bytes.", "ONNXLA_FOLDING_BYTES"
    )
    folding_seconds: float = _knob(
        20.0, float, "Longest time constant folding may take, in seconds.", "ONNXLA_FOLDING_SECONDS"
    )
    dump_to: str | None = _knob(
        None, str, "Folder that receives every stage of the compiler as text, and the weights.", "ONNXLA_DUMP_TO"
    )
    dump_weights: bool = _knob(
        True, _boolean, "Whether dumps hold the weights, so that every stage replays.", "ONNXLA_DUMP_WEIGHTS"
    )
    compile_timeout: float | None = _knob(
        None,
        float,
        "Most seconds that one call of `compile`, or the compiling that one run starts, may take.",
        "ONNXLA_COMPILE_TIMEOUT",
    )
    tune_seconds: float = _knob(
        0.0,
        float,
        "How long to measure ways to compute a model's kernels on this machine, about; 0 leaves the choice to the "
        "model of costs. What was measured is kept in `cache_dir`.",
        "ONNXLA_TUNE_SECONDS",
    )
    cache_dir: str | None = _knob(
        None, str, "Folder of the compile cache; without it nothing is cached.", "ONNXLA_CACHE_DIR"
    )
    cache_bytes: int = _knob(
        4 << 30, int, "Size of the compile cache above which old entries go.", "ONNXLA_CACHE_BYTES"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.precision not in PRECISIONS:
            raise InputError(f"precision={self.precision!r}: choose one of {', '.join(map(repr, PRECISIONS))}")
        if self.opt_level not in (0, 1, 2, 3):
            raise InputError(f"opt_level={self.opt_level!r}: choose 0, 1, 2 or 3")
        if self.compile_timeout == 0:
            raise InputError(f"compile_timeout={self.compile_timeout:g}: choose a number of seconds above 0")

        if not 0 <= self.tune_seconds < float("inf"):
            raise InputError(f"tune_seconds={self.tune_seconds!r}: choose a number of seconds, or 0")

    def code_options(self) -> dict[str, object]:
        """The options that change the code, by name, for the cache and the artifact."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NEUTRAL}


_NEUTRAL = (
    "pad_to_bucket",
    "verify",
    "dump_to",
    "dump_weights",
    "compile_timeout",
    "tune_seconds",
    "cache_dir",
    "cache_bytes",
)
"""Options that leave the code as it is, or have a part of the key of their own (tuning)."""


@dataclass(frozen=True)
class RuntimeSettings(_Settings):
    """What a compiled model does at run time."""

    num_threads: int | None = _knob(
        None, int, "Most threads a run uses; by default the CPUs this process may use.", "ONNXLA_NUM_THREADS"
    )
    spin_microseconds: int = _knob(
        200, int, "How long a thread without work looks for more before it sleeps.", "ONNXLA_SPIN_MICROSECONDS"
    )
    verify_weights: str = _knob(
        "fast",
        str,
        "How weights are checked when an artifact is loaded: `fast` by checksum, `full` by SHA-256, `off` not at all.",
        "ONNXLA_VERIFY_WEIGHTS",
    )
    specialisations: int = _knob(
        8, int, "Most sets of input shapes for which one model keeps code.", "ONNXLA_SPECIALISATIONS"
    )

    launch_blocking: bool = _knob(
        False,
        _boolean,
        "Wait for every kernel on a GPU before the next is asked for, so that an error names the node. Slow.",
        "ONNXLA_LAUNCH_BLOCKING",
    )
    limits_file: str | None = _knob(
        None,
        str,
        "File that keeps what this machine was measured to do; by default `onnxla/limits.json` in the cache folder.",
        "ONNXLA_LIMITS_FILE",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.verify_weights not in ("fast", "full", "off"):
            raise InputError(f"verify_weights={self.verify_weights!r}: choose 'fast', 'full' or 'off'")
        for name in ("num_threads", "specialisations"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name}={value}: at least 1 is needed")


@dataclass(frozen=True)
class Limits(_Settings):
    """What an input may ask for. Beyond one of these a stage raises ResourceLimitError instead of trying."""

    nodes: int = _knob(1_000_000, int, "Most nodes of a model, and instructions of an HLO text.", "ONNXLA_MAX_NODES")
    nesting: int = _knob(100, int, "Deepest nesting of subgraphs, calls and tuple types.", "ONNXLA_MAX_NESTING")
    elements: int = _knob(1 << 34, int, "Most elements of one tensor.", "ONNXLA_MAX_ELEMENTS")
    unrolled_iterations: int = _knob(
        64, int, "Most iterations of a loop that is written out because its shapes change.", "ONNXLA_MAX_UNROLLED"
    )
    text_bytes: int = _knob(1 << 30, int, "Longest HLO text, in bytes.", "ONNXLA_MAX_TEXT_BYTES")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.nesting <= 200:
            raise InputError(f"nesting={self.nesting}: choose 1 to 200, which is as deep as this compiler can follow")


@dataclass(frozen=True)
class ChildLimits(_Settings):
    """What a compile in a process of its own may take, as a service starts one for each model. Beyond one of these it
    is killed with all that it started, and ends with a ResourceLimitError."""

    memory_bytes: int = _knob(
        8 << 30,
        int,
        "Most memory of a compile in a process of its own, its workers together, in bytes.",
        "ONNXLA_CHILD_MEMORY_BYTES",
    )
    cpu_seconds: float = _knob(
        7200.0,
        float,
        "Most CPU time of a compile in a process of its own, its workers together, in seconds.",
        "ONNXLA_CHILD_CPU_SECONDS",
    )
    wall_seconds: float = _knob(
        3600.0, float, "Most seconds that a compile in a process of its own may take.", "ONNXLA_CHILD_WALL_SECONDS"
    )
    file_bytes: int = _knob(
        16 << 30,
        int,
        "Largest file that a compile in a process of its own may write, in bytes.",
        "ONNXLA_CHILD_FILE_BYTES",
    )
    niceness: int = _knob(
        10, int, "By how much a compile in a process of its own gives way to others, 0 to 19.", "ONNXLA_CHILD_NICENESS"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("memory_bytes", "cpu_seconds", "wall_seconds", "file_bytes"):
            if not 0 < getattr(self, name) < 1 << 62:
                raise InputError(f"{name}={getattr(self, name)}: choose a number above 0")
        if self.niceness > 19:
            raise InputError(f"niceness={self.niceness}: choose 0 to 19")


SETTINGS: tuple[type[_Settings], ...] = (CompileOptions, RuntimeSettings, Limits, ChildLimits)
"""Every group of knobs, in the order of the documentation."""


def table() -> str:
    """Every knob as a Markdown table: the page of the documentation."""
    rows = ["| knob | environment variable | default | what it does |", "| --- | --- | --- | --- |"]
    for settings in SETTINGS:
        for knob in settings.describe():
            rows.append(f"| `{knob.name}` | `{knob.variable}` | `{knob.default!r}` | {knob.about} |")
    return "\n".join(rows) + "\n"
