"""XLA as the judge of HLO: its own CPU client, where jaxlib is installed.

It runs in a process of its own (`xla_process.py`): a program that it does not like may end the process it is in.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata, util
from pathlib import Path

import numpy as np

from onnxla.errors import InputError
from onnxla.hlo.module import Module
from onnxla.hlo.ops.control_flow import Call, Fusion
from onnxla.hlo.printer import entry_weights, print_module
from onnxla.hlo.types import ELEMENT_TYPES, Array, element_of

_SECONDS = 1200


def xla_version() -> str | None:
    """The version of jaxlib; None where JAX is not installed."""
    if util.find_spec("jax") is None or util.find_spec("jaxlib") is None:
        return None
    return metadata.version("jaxlib")


def run_mlir(text: str, arguments: Sequence[Array]) -> list[Array]:
    """What XLA computes of StableHLO text with static shapes. Raises InputError where it refuses."""
    return _run("mlir", text, arguments)


def run_module(module: Module, arguments: Sequence[Array]) -> list[Array]:
    """What XLA computes of a module; the long constants of the entry are passed to it. Raises InputError.

    Our fusions become calls in the module: XLA would take them for its own, which hold less.
    """
    for computation in module.computations():
        for instruction in computation.instructions():
            if isinstance(instruction.op, Fusion):
                instruction.op = Call(instruction.op.calls)
    weights = [literal.array for literal in entry_weights(module)]
    return _run("hlo", print_module(module, weights="parameters"), [*arguments, *weights])


def _run(kind: str, text: str, arguments: Sequence[Array]) -> list[Array]:
    with tempfile.TemporaryDirectory(prefix="onnxla-xla-") as name:
        folder = Path(name)
        (folder / f"program.{kind}").write_text(text)
        write_arrays(folder, "input", arguments)
        # by default XLA's CPU client loses NaN in maximum and minimum
        flags = os.environ.get("XLA_FLAGS", "--xla_cpu_enable_fast_min_max=false")
        environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), environment.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "onnxla.debugging.xla_process", name]
        try:
            ended = subprocess.run(command, capture_output=True, env=environment, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise InputError(f"XLA did not end in {_SECONDS} s") from None
        if ended.returncode:
            lines = [line for line in ended.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
            said = lines[-1] if lines and ended.returncode > 0 else f"it ended with {ended.returncode}"
            raise InputError(
                f"XLA cannot run the program: {''.join(c if c.isprintable() else ' ' for c in said)[:300]}"
            )
        return read_arrays(folder, "output")


def write_arrays(folder: Path, name: str, arrays: Sequence[Array]) -> None:
    """Arrays of any element type: their bytes, and a list of types and shapes."""
    kinds = [[str(element_of(a.dtype)), list(a.shape)] for a in arrays]
    (folder / f"{name}.json").write_text(json.dumps(kinds))
    for k, array in enumerate(arrays):
        (folder / f"{name}_{k}.bin").write_bytes(np.ascontiguousarray(array).tobytes())


def read_arrays(folder: Path, name: str) -> list[Array]:
    """What `write_arrays` wrote."""
    kinds = json.loads((folder / f"{name}.json").read_text())
    return [
        np.frombuffer((folder / f"{name}_{k}.bin").read_bytes(), ELEMENT_TYPES[element].dtype).reshape(shape)
        for k, (element, shape) in enumerate(kinds)
    ]
