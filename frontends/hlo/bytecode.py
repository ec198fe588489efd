"""Portable StableHLO bytecode and functions that `jax.export` has serialized, as text: jaxlib's MLIR reads them.

It runs in a process of its own, since what stands in a file from a stranger may end a parser that is written in C++.
"""

import os
import subprocess
import sys

from onnxla.config import Limits
from onnxla.errors import ModelFormatError, ResourceLimitError

MAGIC = b"ML\xefR"
"""How MLIR's bytecode begins."""

_SECONDS = 600

_OF_BYTECODE = """
import sys
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo
context = ir.Context()
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context.append_dialect_registry(registry)
context.load_all_available_dialects()
data = sys.stdin.buffer.read()
try:
    module = stablehlo.deserialize_portable_artifact(context, data)
except Exception:
    module = ir.Module.parse(data, context)
operation = module.operation
"""

_OF_EXPORT = """
import sys
from jax import export
from jax._src.interpreters import mlir
exported = export.deserialize(bytearray(sys.stdin.buffer.read()))
if exported.nr_devices != 1:
    raise ValueError(f"the function was exported for {exported.nr_devices} devices")
from jaxlib.mlir.dialects import stablehlo
context = mlir.make_ir_context()
operation = stablehlo.deserialize_portable_artifact(context, exported.mlir_module_serialized).operation
"""

_TIED = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL: it ends with the process that asked
    if os.getppid() != {parent}:
        os._exit(1)
"""

_PRINT = """
sys.stdout.write(operation.get_asm(enable_debug_info=True, print_generic_op_form=True))
"""


def text_of_bytecode(data: bytes, name: str, limits: Limits) -> str:
    """The text of MLIR bytecode. Raises ModelFormatError where it is none, or jaxlib is not installed."""
    return _text(_OF_BYTECODE, data, f"{name} is MLIR bytecode", limits)


def text_of_export(data: bytes, name: str, limits: Limits) -> str:
    """The text of a function that `jax.export` has serialized. Raises ModelFormatError as `text_of_bytecode`."""
    return _text(_OF_EXPORT, data, f"{name} is an exported function of JAX", limits)


def _text(program: str, data: bytes, what: str, limits: Limits) -> str:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    try:
        run = subprocess.run(
            [sys.executable, "-c", _TIED.format(parent=os.getpid()) + program + _PRINT],
            input=data,
            capture_output=True,
            timeout=_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ResourceLimitError(f"{what}; reading it took more than {_SECONDS} s") from None
    if run.returncode:
        raise ModelFormatError(f"{what}; {_cause(run.stderr, run.returncode)}")
    if len(run.stdout) > limits.text_bytes:
        raise ResourceLimitError(
            f"{what} of {len(run.stdout)} characters; the limit is {limits.text_bytes} (text_bytes)"
        )
    return run.stdout.decode("utf-8", "replace")


def _cause(said: bytes, code: int) -> str:
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    last = "".join(c if c.isprintable() else " " for c in (lines[-1] if lines else f"exit status {code}"))[:300]
    if "ModuleNotFoundError" in last:
        return (
            f"reading it takes jax ({last}): install jax and jaxlib, or write it as text where they are, with "
            "`exported.mlir_module()`"
        )
    return f"jaxlib cannot read it: {last}"
