"""Triton's ModelConfig as ours: every field is followed, refused, or known to change nothing but speed elsewhere."""

from typing import Any

from onnxla.serving.config_parameters import (
    Parameters,
    read_count,
    read_count_or_none,
    read_dims,
    read_one_of,
    read_options,
    read_sizes,
    read_truth,
)
from onnxla.serving.errors import InvalidRequestError
from onnxla.serving.model_config import Batching, Message, ModelConfig, VersionPolicy, Warmup

_MOST_ROWS = 1 << 20
_MOST_INSTANCES = 256
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
_BACKENDS = ("", "onnxla", "onnxruntime", "tensorflow")
_PLATFORMS = ("", "onnxla", "onnxruntime_onnx", "tensorflow_savedmodel", "tensorflow_graphdef")


def config_of_message(name: str, message: Message, problems: list[str]) -> ModelConfig:
    """What a message says of the model `name`. Raises InvalidRequestError with every problem, `problems` among them."""
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
    values = Parameters(message.parameters, problems)
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
        batch_sizes=values.take("batch_sizes", read_sizes, ()),
        assume_independent_rows=values.take("assume_independent_rows", read_truth, False),
        dims=values.take("dims", read_dims, {}),
        unseen_shapes=values.take("unseen_shapes", read_one_of("compile", "refuse"), "compile"),
        specialisations=values.take("specialisations", read_count, 16),
        num_threads=values.take("num_threads", read_count, None),
        workers=values.take("workers", read_count_or_none, None),
        options=values.take("options", read_options, {}),
        fallback=values.take("fallback", read_one_of("onnxruntime"), None),
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
