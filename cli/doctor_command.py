"""`onnxla doctor`: what of this machine and its libraries onnxla finds."""

import os
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from onnxla.cli import arguments
from onnxla.cli.output import print_json, say, size
from onnxla.errors import DeviceError
from onnxla.runtime.machine import usable_cpus
from onnxla.runtime.thread_pool import default_threads
from onnxla.version import __version__

_LIBRARIES = ("numpy", "ml_dtypes", "onnx", "onnxruntime", "llvmlite", "rich", "typer")


def doctor(as_json: arguments.Json = False) -> None:
    """Show versions, the CPU that code is made for, and whether there is a GPU and a compiler for it."""
    found = facts()
    if as_json:
        print_json(found)
        return
    for name, rows in found.items():
        say(name, style="bold")
        for key, value in rows.items():
            say(f"  {key:<12} {', '.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")


def facts() -> dict[str, dict[str, Any]]:
    """All that `doctor` shows, by topic."""
    topics: dict[str, Callable[[], dict[str, Any]]] = {
        "onnxla": _onnxla,
        "cpu": _cpu,
        "llvm": _llvm,
        "nvrtc": _nvrtc,
        "gpu": _gpu,
        "libraries": _libraries,
    }
    return {topic: find() for topic, find in topics.items()}


def _onnxla() -> dict[str, Any]:
    settings = {name: value for name, value in sorted(os.environ.items()) if name.startswith("ONNXLA_")}
    return {"version": __version__, "python": platform.python_version(), "system": platform.platform(), **settings}


def _cpu() -> dict[str, Any]:
    from onnxla.codegen.cpu.target import host_target

    target = host_target()
    return {
        "target": target.name,
        "vectors": f"{target.vector_bytes * 8} bits",
        "caches": [size(n) for n in (target.l1_bytes, target.l2_bytes, target.l3_bytes)],
        "cpus": usable_cpus(),
        "threads": default_threads(),
        "features": list(target.features),
        "target_cpu": str(target),
    }


def _llvm() -> dict[str, Any]:
    import llvmlite.binding as llvm

    return {"version": ".".join(map(str, llvm.llvm_version_info)), "triple": llvm.get_process_triple()}


def _nvrtc() -> dict[str, Any]:
    """The compiler for GPUs, which needs none."""
    from onnxla.codegen.gpu.compile_nvrtc import nvrtc_version, supported_architectures

    try:
        return {"version": nvrtc_version(), "compiles for": supported_architectures()}
    except DeviceError as error:
        return {"missing": str(error)}


def _gpu() -> dict[str, Any]:
    """The NVIDIA devices, by the driver's own word."""
    from onnxla.runtime.cuda_driver import cuda_driver, driver_version, gpus, is_old

    found: dict[str, Any] = {}
    for name in ("cuda-bindings", "nvidia-cuda-nvrtc", "nvmath-python", "nvidia-cublas"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    try:
        driver = cuda_driver()
        found["driver"] = f"CUDA {driver_version(driver)}"
        if is_old(driver):
            found["driver"] += (
                ": older than the PTX of compiled models, so they need --arch of the GPU, or a newer driver"
            )
        found["devices"] = list(map(str, gpus(driver))) or ["none"]
    except DeviceError as error:
        found["missing"] = str(error)
    return found


def _libraries() -> dict[str, Any]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found
