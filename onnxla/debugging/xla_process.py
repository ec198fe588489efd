"""A process that gives a program to XLA's CPU client: `python -m onnxla.debugging.xla_process FOLDER`.

The folder holds `program.hlo` or `program.mlir`, and arrays; the results are written into it.
"""

import contextlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from onnxla.debugging.xla_witness import read_arrays, write_arrays


def main(folder: Path) -> None:
    import jax
    from jax._src.lib import _jax, xla_client
    from jaxlib import _hlo, lapack

    with contextlib.suppress(AttributeError):
        lapack._lapack.initialize()  # without it a call of LAPACK's ends the process
    program: Any
    if (folder / "program.mlir").exists():
        program = (folder / "program.mlir").read_text()
    else:
        module = _hlo.hlo_module_from_text((folder / "program.hlo").read_text())
        proto = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
        program = _jax.mlir.xla_computation_to_mlir_module(proto)
    device = jax.local_devices(backend="cpu")[0]
    executable = device.client.compile_and_load(program, xla_client.DeviceList((device,)))
    placed = [jax.device_put(a, device) for a in read_arrays(folder, "input")]
    results = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
    write_arrays(folder, "output", [np.asarray(shards[0]) for shards in results])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
