"""XLA itself as a witness: HLO text in, the arrays its CPU client computes out. Needs jaxlib, a test dependency."""

import os
from collections.abc import Sequence
from typing import Any

# by default XLA's CPU client loses NaN in maximum and minimum
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_enable_fast_min_max=false")

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax._src.lib import _jax, xla_client  # noqa: E402
from jaxlib import _hlo  # noqa: E402

from onnxla.hlo.types import Array  # noqa: E402


def parse(text: str) -> Any:
    """XLA's module of an HLO text; XLA's parser and verifier raise on what they do not accept."""
    return _hlo.hlo_module_from_text(text)


def run(text: str, arguments: Sequence[Array]) -> list[Array]:
    """What XLA's CPU client computes; a tuple result comes as its elements."""
    with jax.enable_x64(True):
        computation = _hlo.XlaComputation(parse(text).as_serialized_hlo_module_proto())
        program = _jax.mlir.xla_computation_to_mlir_module(computation)
        device = jax.local_devices(backend="cpu")[0]
        executable = device.client.compile_and_load(program, xla_client.DeviceList((device,)))
        placed = [jax.device_put(a, device) for a in arguments]
        results = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
        return [np.asarray(shards[0]) for shards in results]
