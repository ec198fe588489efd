"""Execution providers: CPUExecutionProvider is code for the CPU, CUDAExecutionProvider code for an NVIDIA GPU. Others
are not there, and are passed over with a warning, as onnxruntime passes over those that it was not built with.
"""

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnxla.backend import has_gpu
from onnxla.compat.errors import NotImplemented, compat_error

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
Providers: TypeAlias = "Sequence[str | tuple[str, Mapping[Any, Any]]] | None"
_UNMET = {
    "gpu_mem_limit": "memory on the GPU is taken as the model needs it",
    "user_compute_stream": "give the stream to CompiledModel.run_async",
}


@functools.cache
def _has_gpu() -> bool:
    return has_gpu()


def get_available_providers() -> list[str]:
    """In the order of preference."""
    return [CUDA, CPU] if _has_gpu() else [CPU]


def get_all_providers() -> list[str]:
    """Those that this library can have on some machine."""
    return [CUDA, CPU]


def get_device() -> str:
    """`GPU` where there is one to run on, else `CPU`."""
    return "GPU" if _has_gpu() else "CPU"


@dataclass(frozen=True)
class Placement:
    """Where a session runs, and what was asked for."""

    gpu: int | None
    precision: str | None
    """`compile`'s, where the options of the provider ask for one."""
    options: Mapping[str, Mapping[str, str]]
    """The options of the providers that are used, by name."""


def placement(providers: Providers, provider_options: Sequence[Mapping[Any, Any]] | None) -> Placement:
    """The first of the providers that is there; the CPU comes last by itself.

    Warns of those that are not there, or given twice. Raises ValueError for arguments that cannot be read,
    NotImplemented for options that would have to change what is computed or in what order.
    """
    chosen: dict[str, dict[str, str]] = {}
    available = get_available_providers()
    for name, options in _pairs(providers, provider_options):
        if name not in available:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names.Available providers: "
                f"'{', '.join(available)}'",
                stacklevel=4,
            )
        elif name in chosen:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
        else:
            chosen[name] = {str(key): str(value) for key, value in options.items()}
    if not chosen and providers is None:
        chosen[available[0]] = {}
    # What stands behind the CPU is never reached.
    gpu = int(chosen[CUDA].get("device_id", 0)) if next(iter(chosen), CPU) == CUDA else None
    if gpu is None:
        chosen.pop(CUDA, None)
        return Placement(None, None, {CPU: chosen.get(CPU, {})})
    return Placement(gpu, _precision(chosen[CUDA]), {CUDA: chosen[CUDA], CPU: chosen.get(CPU, {})})


def _precision(options: Mapping[str, str]) -> str | None:
    """What the options of the GPU ask of the numbers. onnxruntime uses TF32 unless told not to, onnxla if told to."""
    if "user_compute_stream" in options:
        raise compat_error(NotImplemented, f"{CUDA}: user_compute_stream; {_UNMET['user_compute_stream']}")
    if "gpu_mem_limit" in options:
        warnings.warn(f"{CUDA}: gpu_mem_limit is not kept; {_UNMET['gpu_mem_limit']}", stacklevel=5)
    return "tf32" if options.get("use_tf32") == "1" else None


def _pairs(
    providers: Providers, provider_options: Sequence[Mapping[Any, Any]] | None
) -> list[tuple[str, Mapping[Any, Any]]]:
    if providers is None:
        return []
    if isinstance(providers, str):
        providers = [providers]
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is not None:
        if not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(provider, str) for provider in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(options, Mapping) for options in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        return list(zip(map(str, providers), provider_options, strict=True))
    found: list[tuple[str, Mapping[Any, Any]]] = []
    for provider in providers:
        match provider:
            case str():
                found.append((provider, {}))
            case (str() as name, Mapping() as options):
                found.append((name, options))
            case _:
                raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    return found
