"""XLA as the judge of HLO: its own CPU client, where jaxlib is installed, on the program as it was given."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.errors import InputError
from onnxla.hlo.module import Module
from onnxla.hlo.ops.control_flow import Call, Fusion
from onnxla.hlo.printer import entry_weights, print_module
from onnxla.hlo.types import Array


def xla_version() -> str | None:
    """The version of jaxlib; None where it is not installed, or lacks what is needed."""
    # by default XLA's CPU client loses NaN in maximum and minimum
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_enable_fast_min_max=false")
    try:
        import jaxlib
        from jax._src.lib import _jax, xla_client  # noqa: F401
        from jaxlib import _hlo  # noqa: F401
    except ImportError:
        return None
    return str(jaxlib.__version__)


def run_mlir(text: str, arguments: Sequence[Array]) -> list[Array]:
    """What XLA computes of StableHLO text with static shapes. Raises InputError where it refuses."""
    return _run(text, arguments)


def run_module(module: Module, arguments: Sequence[Array]) -> list[Array]:
    """What XLA computes of a module; the long constants of the entry are passed to it. Raises InputError.

    Our fusions become calls in the module: XLA would take them for its own, which hold less.
    """
    from jax._src.lib import _jax
    from jaxlib import _hlo

    for computation in module.computations():
        for instruction in computation.instructions():
            if isinstance(instruction.op, Fusion):
                instruction.op = Call(instruction.op.calls)
    text = print_module(module, weights="parameters")
    weights = [literal.array for literal in entry_weights(module)]
    try:
        proto = _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
        program = _jax.mlir.xla_computation_to_mlir_module(proto)
    except Exception as error:  # it has no common base
        raise InputError(f"XLA cannot read the program: {_first_line(error)}") from error
    return _run(program, [*arguments, *weights])


def _run(program: Any, arguments: Sequence[Array]) -> list[Array]:
    import jax
    from jax._src.lib import xla_client

    try:
        with jax.enable_x64(True):
            device = jax.local_devices(backend="cpu")[0]
            executable = device.client.compile_and_load(program, xla_client.DeviceList((device,)))
            placed = [jax.device_put(a, device) for a in arguments]
            results = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
            return [np.asarray(shards[0]) for shards in results]
    except Exception as error:  # it has no common base
        raise InputError(f"XLA cannot run the program: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return "".join(c if c.isprintable() else " " for c in str(error).partition("\n")[0])[:300]
