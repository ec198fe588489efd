"""What `scripts/gpu_check.sh` runs: the tests marked `needs_gpu` on a GPU, fragment layouts first, then times.

Tests compile for the GPU's own architecture, unless `ONNXLA_TARGET_GPU` says otherwise. With `--pretended` the GPU is
`pretended_driver.py`, sizes are small, and times mean nothing: so that this file is no news to a machine that has one.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from onnxla.cli.doctor_command import facts
from onnxla.errors import DeviceError
from onnxla.runtime import cuda_driver
from onnxla.runtime.cuda_device import CudaDevice
from tests.gpu.speed import LARGE, SMALL, own_architecture, table

ROOT = Path(__file__).parents[2]
SECONDS = 540
"""For everything."""
TABLE_SECONDS = 120
"""That are left for the table of times."""
STAGES = (
    ("fragment layouts", ["tests/gpu/test_fragments.py"]),
    ("classes of kernels", ["tests/gpu/test_kernel_classes.py"]),
    ("models and the runtime", [f"tests/gpu/test_{name}.py" for name in ("models", "on_gpu", "precision", "launches")]),
    ("operations of HLO", ["tests/gpu/test_operations.py"]),
    ("operators of ONNX", ["tests/gpu/test_conformance.py"]),
)
SANITIZER = "compute-sanitizer"
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
"""Of NVIDIA's sanitizer, each over all classes of kernels, where it is installed."""
QUIET = ("-q", "--maxfail=10", "-m", "needs_gpu", "-p", "no:cacheprovider")
NO_GPU = 6


def main(arguments: Sequence[str]) -> int:
    """The exit code of the script."""
    unknown = set(arguments) - {"--pretended", "--only-fragments"}
    if unknown:
        print(f"no option {', '.join(sorted(unknown))}; there are --pretended and --only-fragments")
        return 2
    pretended = "--pretended" in arguments
    begin = time.monotonic()
    if pretended:
        from tests.gpu.pretended_driver import PretendedDriver

        driver = PretendedDriver(capability=(12, 9))  # newer than machine code is made for: it runs PTX
        cuda_driver._bindings = lambda: driver
        print("a pretended GPU: results count, times do not")
    try:
        print(f"GPU: {CudaDevice().gpu}")
    except DeviceError as error:
        print(f"no check without a GPU: {error}")
        return NO_GPU
    for topic in ("gpu", "nvrtc"):
        print(f"{topic}: {'; '.join(f'{name} {value}' for name, value in facts()[topic].items())}")
    os.environ.setdefault("ONNXLA_TARGET_GPU", own_architecture())
    failed = False
    for name, places in STAGES[:1] if "--only-fragments" in arguments else STAGES:
        print(f"== {name}", flush=True)
        left = SECONDS - TABLE_SECONDS - (time.monotonic() - begin)
        ended = _in_this_process(places) if pretended else _in_a_process(places, left)
        failed |= ended != 0
        print(f"== {name}: {'right' if not ended else 'WRONG'}, after {time.monotonic() - begin:.0f} s", flush=True)
        if ended not in (0, 1):
            print(f"pytest ended with {ended}: the tests were not run to their end")
        elif ended and places == STAGES[0][1]:
            print(
                "the tensor cores hold their fragments in another way than the generator thinks: nothing else is worth"
            )
            print("running before that is mended")
            return 1
    if not pretended:
        failed |= _sanitized(SECONDS - TABLE_SECONDS - (time.monotonic() - begin))
    print("== times", flush=True)
    print(table(SMALL if pretended else LARGE, SECONDS - (time.monotonic() - begin)))
    return int(failed)


def _in_a_process(places: Sequence[str], seconds: float, before: Sequence[str] = ()) -> int:
    """So that a kernel that breaks the context breaks nothing else."""
    command = [*before, sys.executable, "-m", "pytest", *QUIET, *places]
    try:
        return subprocess.run(command, cwd=ROOT, timeout=max(seconds, 1)).returncode
    except subprocess.TimeoutExpired:
        print(f"not done after {seconds:.0f} s")
        return 1


def _sanitized(seconds: float) -> bool:
    """Whether a tool of the sanitizer finds something, where there is one; those without time are named."""
    path = shutil.which(SANITIZER)
    if path is None:
        print(f"== {SANITIZER}: not there")
        return False
    end, found = time.monotonic() + seconds, False
    for tool in TOOLS:
        print(f"== {SANITIZER} {tool}", flush=True)
        left = end - time.monotonic()
        if left < 0:
            print("no time left")
            continue
        options = ["--tool", tool, "--error-exitcode", "9"]
        found |= _in_a_process(["tests/gpu/test_kernel_classes.py"], left, [path, *options]) != 0
    return found


def _in_this_process(places: Sequence[str]) -> int:
    quiet = [*QUIET, "-p", "no:xdist"]
    return int(pytest.main([f"--rootdir={ROOT}", *quiet, *(str(ROOT / p) if "/" in p else p for p in places)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
