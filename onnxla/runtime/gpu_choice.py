"""Where a model runs: on the CPU, or on which GPU, by what there is code for and what the machine has."""

import logging
from collections.abc import Sequence

from onnxla.errors import DeviceError
from onnxla.runtime.program import GPU_TRIPLE, Program
from onnxla.runtime.streams import gpu_number

_LOG = logging.getLogger("onnxla")


def chosen_gpu(programs: Sequence[Program], device: str | None) -> int | None:
    """The number of the GPU to run on, None for the CPU. Raises DeviceError where there is no code for `device`."""
    kinds = {p.triple == GPU_TRIPLE for p in programs}
    if device is not None:
        number = gpu_number(device)
        if kinds and (number is not None) not in kinds:
            there, missing = ("cpu", "gpu") if number is not None else ("gpu", "cpu")
            raise DeviceError(
                f"device={device!r}: the model has no code for a {missing.upper()}, only for a {there.upper()}; "
                f"compile it with target={missing!r}, or with 'cpu,gpu' for both"
            )
        return number
    if kinds != {True, False}:
        return 0 if True in kinds else None
    from onnxla.runtime.cuda_driver import cuda_driver, gpus

    try:
        found = gpus(cuda_driver())
    except DeviceError as error:
        _LOG.info("the model runs on the CPU: %s", error)
        return None
    oldest = min(int(p.cpu.removeprefix("sm_").rstrip("af")) for p in programs if p.triple == GPU_TRIPLE)
    fitting = [gpu for gpu in found if int(gpu.architecture.removeprefix("sm_")) >= oldest]
    _LOG.info("the model runs on %s", fitting[0] if fitting else f"the CPU: no GPU from sm_{oldest} on")
    return fitting[0].number if fitting else None
