"""What one model is told by its `config.pbtxt`: Triton's ModelConfig, with settings of our own among its parameters.

Fields that decide what is computed, or when, are followed or refused; those that only suggest how to be fast on other
engines (`optimization`) have no effect. Everything that is wrong with a configuration is in one report.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2

from onnxla.config import CompileOptions
from onnxla.errors import OnnxlaError, harmless_line
from onnxla.given import whole_number
from onnxla.serving.errors import InvalidRequestError

Message = Any
"""A protobuf message."""
_MOST_ROWS = 1 << 20
_MOST_INSTANCES = 256
_MOST_PROBLEMS = 100

_UNSUPPORTED = {
    "batch_input": "batch inputs are not made by this server",
    "batch_output": "batch outputs are not taken apart by this server",
    "sequence_batching": "requests of one sequence are not kept together; send the state as inputs",
    "ensemble_scheduling": "ensembles are not served; join the models into one",
    "model_operations": "libraries are not loaded",
    "model_repository_agents": "repository agents are not run",
    "cc_model_filenames": "there are no compute capabilities here; use default_model_filename",
    "model_transaction_policy.decoupled": "a request has exactly one response",
    "response_cache.enable": "responses are not cached",
    "dynamic_batching.preserve_ordering": "responses are sent when they are there",
    "dynamic_batching.priority_queue_policy": "there is one queue, without priorities",
    "input.reshape": "reshape in the model",
    "input.is_shape_tensor": "shape tensors belong to other engines",
    "input.allow_ragged_batch": "requests of other shapes are not put together",
    "input.optional": "all inputs are needed",
    "input.is_non_linear_format_io": "tensors are dense and row-major",
    "output.reshape": "reshape in the model",
    "output.label_filename": "results are not classified",
    "output.is_shape_tensor": "shape tensors belong to other engines",
    "output.is_non_linear_format_io": "tensors are dense and row-major",
    "instance_group.rate_limiter": "the number of instances is the limit",
    "instance_group.secondary_devices": "a model runs on one device",
    "instance_group.profile": "profiles belong to other engines",
    "instance_group.passive": "every instance serves requests",
    "instance_group.host_policy": "there are no host policies",
    "model_warmup.inputs.value.input_data_file": "warm-up data are zeros or random",
}
_OF_OTHER_ENGINES = re.compile(
    r"(intra_op|inter_op|execution_mode|enable_mem|memory\.|cudnn_|gpu_mem|arena_|TRITON|level$)"
)
"""Parameters of Triton's other backends, which only say how to be fast."""
_TOKEN = re.compile(r"""#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{}<>\[\]]|[^\s{}<>\[\],;"'#]+""")
"""Comments, texts, brackets and words of protobuf's text."""
_BACKENDS = ("", "onnxla", "onnxruntime", "tensorflow")
_PLATFORMS = ("", "onnxla", "onnxruntime_onnx", "tensorflow_savedmodel", "tensorflow_graphdef")


@dataclass(frozen=True)
class VersionPolicy:
    latest: int | None = 1
    """The newest so many; None for others."""
    specific: tuple[int, ...] | None = None
    """These; None for others. Where both are None all versions are served."""

    def choose(self, versions: Sequence[int]) -> list[int]:
        """Those of `versions` to serve, the oldest first."""
        ordered = sorted(versions)
        if self.specific is not None:
            return [v for v in ordered if v in self.specific]
        return ordered if self.latest is None else ordered[-self.latest :]


@dataclass(frozen=True)
class Batching:
    """How requests are put together."""

    preferred: tuple[int, ...] = ()
    """Numbers of rows that are worth being waited for."""
    delay: float = 0.0
    """Seconds that a request may wait for others while an instance is idle."""


@dataclass(frozen=True)
class Warmup:
    """A run before the model is ready."""

    shapes: Mapping[str, tuple[int, ...]]
    random: tuple[str, ...]
    """Inputs with random values; others are zeros."""
    batch: int
    count: int


@dataclass(frozen=True)
class ModelConfig:
    """A configuration, checked as far as it can be without the model."""

    name: str
    max_batch_size: int = 0
    batching: Batching | None = None
    queue_size: int | None = None
    queue_timeout: float | None = None
    """Seconds after which a request that has not begun is given up."""
    instances: int | None = None
    device: str | None = None
    versions: VersionPolicy = VersionPolicy()
    warmup: tuple[Warmup, ...] = ()
    file_name: str = ""
    target: str = "cpu"
    batch_dimension: str = ""
    """Empty: the first dimension of the inputs."""
    batch_sizes: tuple[int, ...] = ()
    """Numbers of rows to compile for; empty: powers of two up to `max_batch_size`."""
    assume_independent_rows: bool = False
    dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Sizes of symbolic dimensions to compile for ahead."""
    unseen_shapes: str = "compile"
    """`compile` in the background, or `refuse`."""
    specialisations: int = 16
    """Most sets of shapes for which code is kept."""
    num_threads: int | None = None
    workers: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Knobs of CompileOptions."""
    fallback: str | None = None
    signature: str | None = None
    message: Message = field(default_factory=model_config_pb2.ModelConfig, repr=False, compare=False)
    """Triton's message that it was read from."""


def config_of_text(name: str, text: str) -> ModelConfig:
    """What `config.pbtxt` says. Raises InvalidRequestError with every problem."""
    message, problems = _parsed(text)
    return _config(name, message, problems)


def config_of_json(name: str, text: str) -> ModelConfig:
    """What the parameter `config` of a load request says. Raises InvalidRequestError with every problem."""
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("it is no object")
        message = json_format.ParseDict(document, model_config_pb2.ModelConfig())
    except (ValueError, json_format.ParseError, RecursionError) as error:
        raise InvalidRequestError(
            f"{name}: config is no ModelConfig in JSON: {harmless_line(str(error))[:300]}"
        ) from None
    return _config(name, message, [])


def _parsed(text: str) -> tuple[Message, list[str]]:
    """The message, and a problem for each field that there is not."""
    problems: list[str] = []
    lines = text.splitlines(keepends=True)
    while True:
        message = model_config_pb2.ModelConfig()
        try:
            text_format.Parse("".join(lines), message)
            return message, problems
        except text_format.ParseError as error:
            problems.append(harmless_line(str(error))[:300])
            unknown = re.search(r'has no field named "(\w+)"', str(error))
            line, column = error.GetLine(), error.GetColumn()
            if unknown is None or line is None or column is None or len(problems) >= _MOST_PROBLEMS:
                return model_config_pb2.ModelConfig(), problems
            lines = _without_field(lines, line - 1, column - 1)


def _without_field(lines: Sequence[str], line: int, column: int) -> list[str]:
    """The text without the field that begins there, lines kept: for what else is wrong."""
    offset = sum(map(len, lines[:line])) + column
    text = "".join(lines)
    # the position is the name's, or that of the token behind it
    start = re.compile(r"\w+\s*:?\s*").match(text, offset)
    if start is None:
        start = re.compile(r"[:{<\[]\s*").match(text, offset)
        offset = len(text[:offset].rstrip()) - len(re.search(r"\w*$", text[:offset].rstrip())[0])  # type: ignore[index]
        start = re.compile(r"\w+\s*:?\s*").match(text, offset)
    if start is None:
        return []
    end = _end_of_value(text, start.end())
    removed = re.sub(r"[^\n]", " ", text[offset:end])
    return (text[:offset] + removed + text[end:]).splitlines(keepends=True)


def _end_of_value(text: str, place: int) -> int:
    """Behind the value that begins at `place`: a scalar, or something in brackets."""
    depth = 0
    for token in _TOKEN.finditer(text, place):
        if token[0][0] == "#":
            continue
        depth += (token[0] in "{<[") - (token[0] in "}>]")
        if depth < 0:
            return token.start()
        if depth == 0:
            return token.end()
    return len(text)


def _config(name: str, message: Message, problems: list[str]) -> ModelConfig:
    problems = [*problems, *_unsupported(message, "")]

    def require(holds: bool, text: str) -> None:
        if not holds:
            problems.append(text)

    require(message.name in ("", name), f"name is {message.name!r}, and the folder {name!r}")
    require(message.backend in _BACKENDS, f"backend {message.backend!r} is not one of {', '.join(_BACKENDS[1:])}")
    require(message.platform in _PLATFORMS, f"platform {message.platform!r} is not one of {', '.join(_PLATFORMS[1:])}")
    rows = message.max_batch_size
    require(0 <= rows <= _MOST_ROWS, f"max_batch_size is {rows}, and is 0 to {_MOST_ROWS}")
    batching, queue = None, message.dynamic_batching.default_queue_policy
    if message.HasField("dynamic_batching"):
        given = message.dynamic_batching
        require(rows > 0, "dynamic_batching needs max_batch_size")
        wrong = [n for n in given.preferred_batch_size if not 1 <= n <= rows]
        require(not wrong, f"preferred_batch_size {wrong} is not 1 to max_batch_size")
        require(given.priority_levels <= 1, "priority_levels: there is one queue, without priorities")
        require(given.max_queue_delay_microseconds <= 60_000_000, "max_queue_delay_microseconds is above a minute")
        require(queue.timeout_action == 0, "timeout_action DELAY: what is late is refused")
        batching = Batching(tuple(sorted(set(given.preferred_batch_size))), given.max_queue_delay_microseconds / 1e6)
    instances, device = _instances(message, problems)
    versions = _version_policy(message, problems)
    values = _Parameters(message.parameters, problems)
    found = ModelConfig(
        name=name,
        max_batch_size=rows,
        batching=batching,
        queue_size=queue.max_queue_size or None,
        queue_timeout=queue.default_timeout_microseconds / 1e6 or None,
        instances=instances,
        device=device,
        versions=versions,
        warmup=_warmup(message, problems),
        file_name=message.default_model_filename,
        target=values.take("target", str, "cpu" if device is None or device == "cpu" else "gpu"),
        batch_dimension=values.take("batch_dimension", str, ""),
        batch_sizes=values.take("batch_sizes", _sizes, ()),
        assume_independent_rows=values.take("assume_independent_rows", _truth, False),
        dims=values.take("dims", _dims, {}),
        unseen_shapes=values.take("unseen_shapes", _one_of("compile", "refuse"), "compile"),
        specialisations=values.take("specialisations", _count, 16),
        num_threads=values.take("num_threads", _count, None),
        workers=values.take("workers", _count_or_none, None),
        options=values.take("options", _options, {}),
        fallback=values.take("fallback", _one_of("onnxruntime"), None),
        signature=values.take("signature", str, None),
        message=message,
    )
    values.require_known()
    if found.batch_sizes:
        require(rows > 0, "batch_sizes needs max_batch_size")
        require(max(found.batch_sizes) == rows, f"the largest of batch_sizes is not max_batch_size, which is {rows}")
    if problems:
        head = "" if len(problems) == 1 else f"{len(problems)} problems\n"
        raise InvalidRequestError(f"{name}: the configuration is not served: {head}" + "\n".join(problems))
    return found


def _unsupported(message: Message, path: str) -> list[str]:
    """What the message says that would change the meaning of requests, and is not followed."""
    found = []
    for descriptor, value in message.ListFields():
        name = f"{path}{descriptor.name}"
        if name in _UNSUPPORTED:
            found.append(f"{name}: {_UNSUPPORTED[name]}")
            continue
        if descriptor.message_type is None or name == "optimization":
            continue
        if descriptor.message_type.GetOptions().map_entry:
            if descriptor.message_type.fields_by_name["value"].message_type is not None:
                found += [t for inner in value.values() for t in _unsupported(inner, f"{name}.value.")]
            continue
        for inner in value if _is_list(value) else [value]:
            found += _unsupported(inner, f"{name}.")
    return list(dict.fromkeys(found))


def _is_list(value: Any) -> bool:
    return not hasattr(value, "ListFields")


def _instances(message: Message, problems: list[str]) -> tuple[int | None, str | None]:
    """How many there are, and the device that they run on."""
    count, devices = 0, set()
    for group in message.instance_group:
        kind = group.Kind.Name(group.kind)
        if kind == "KIND_MODEL":
            problems.append("instance_group.kind KIND_MODEL: choose KIND_CPU or KIND_GPU")
        if len(group.gpus) > 1:
            problems.append("instance_group.gpus: a model runs on one device")
        if kind == "KIND_GPU":
            devices.add(f"cuda:{group.gpus[0]}" if group.gpus else "cuda")
        elif kind == "KIND_CPU":
            devices.add("cpu")
        count += max(1, group.count)
    if len(devices) > 1:
        problems.append(f"instance_group: one model runs on one device, not on {' and '.join(sorted(devices))}")
    if count > _MOST_INSTANCES or any(group.count < 0 for group in message.instance_group):
        problems.append(f"instance_group.count: {count} instances, and there are 1 to {_MOST_INSTANCES}")
    return count or None, next(iter(devices), None)


def _version_policy(message: Message, problems: list[str]) -> VersionPolicy:
    policy = message.version_policy
    match policy.WhichOneof("policy_choice"):
        case "all":
            return VersionPolicy(None)
        case "specific":
            if not policy.specific.versions:
                problems.append("version_policy.specific names no version")
            return VersionPolicy(None, tuple(policy.specific.versions))
        case "latest":
            return VersionPolicy(policy.latest.num_versions or 1)
    return VersionPolicy()


def _warmup(message: Message, problems: list[str]) -> tuple[Warmup, ...]:
    found = []
    for sample in message.model_warmup:
        shapes = {name: tuple(given.dims) for name, given in sample.inputs.items()}
        if any(n < 0 for shape in shapes.values() for n in shape) or sample.batch_size > _MOST_ROWS:
            problems.append(f"model_warmup {sample.name!r}: a size is out of range")
        if sample.count > 10_000:
            problems.append(f"model_warmup {sample.name!r}: {sample.count} runs are more than 10000")
        random = tuple(n for n, given in sample.inputs.items() if given.WhichOneof("input_data_type") == "random_data")
        found.append(Warmup(shapes, random, max(1, sample.batch_size), max(1, sample.count)))
    return tuple(found)


class _Parameters:
    """Settings of our own, by name."""

    def __init__(self, given: Mapping[str, Message], problems: list[str]) -> None:
        self._given = {name: value.string_value for name, value in given.items()}
        self._problems = problems
        self._known: list[str] = []

    def take(self, name: str, read: Callable[[str], Any], default: Any) -> Any:
        self._known.append(name)
        if name not in self._given:
            return default
        try:
            return read(self._given[name])
        except (ValueError, OnnxlaError) as error:
            self._problems.append(f"parameter {name}={harmless_line(self._given[name])[:80]!r}: {error}")
            return default

    def require_known(self) -> None:
        for name in self._given:
            if name not in self._known and not _OF_OTHER_ENGINES.match(name):
                self._problems.append(f"no parameter {harmless_line(name)!r}; there are {', '.join(self._known)}")


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({whole_number(int(part), "a size", 1) for part in text.split(",")}))


def _dims(text: str) -> dict[str, tuple[int, ...]]:
    """`length=16,32 width=224`"""
    found = {}
    for part in re.split(r"[;\s]+", text.strip()):
        name, equals, sizes = part.rpartition("=")
        if not equals:
            raise ValueError("sizes are written as length=16,32 width=224")
        found[name] = _sizes(sizes)
    return found


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError("choose true or false")
    return text.lower() in ("true", "1")


def _count(text: str) -> int:
    return whole_number(int(text), "a count", 1)


def _count_or_none(text: str) -> int:
    return whole_number(int(text), "a count", 0)


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"choose {' or '.join(choices)}")
        return text

    return read


_OF_SERVERS = ("dump_to", "dump_weights", "cache_dir", "cache_bytes", "compile_timeout", "pad_to_bucket")


def _options(text: str) -> dict[str, Any]:
    """`{"fast_math": true}`"""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("knobs by name in JSON are needed")
    wrong = sorted(set(found) & set(_OF_SERVERS))
    if wrong:
        raise ValueError(f"{', '.join(wrong)} is for the server to choose")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    known = {knob.name for knob in CompileOptions.describe()}
    if set(values) - known:
        raise ValueError(f"no option {', '.join(sorted(set(values) - known))}")
    CompileOptions.from_environment(**values)
    return values
