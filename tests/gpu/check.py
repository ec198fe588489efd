"""What `scripts/gpu_check.sh` runs: the tests marked `needs_gpu` on a GPU, fragment layouts first, then times.

With `--pretended` the GPU is `pretended_driver.py`, sizes are small, and times mean nothing: so that this file is no
news to a machine that has a GPU.
"""

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
from tests.gpu.speed import LARGE, SMALL, table

ROOT = Path(__file__).parents[2]
SECONDS = 540
"""For everything."""
STAGES = (
    ("fragment layouts", ["tests/gpu/test_fragments.py"]),
    ("models and the runtime", ["tests/gpu", "--deselect", "tests/gpu/test_fragments.py"]),
)
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
    failed = False
    for name, places in STAGES[:1] if "--only-fragments" in arguments else STAGES:
        print(f"== {name}", flush=True)
        left = SECONDS - (time.monotonic() - begin)
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
    print("== times", flush=True)
    print(table(SMALL if pretended else LARGE, SECONDS - (time.monotonic() - begin)))
    return int(failed)


def _in_a_process(places: Sequence[str], seconds: float) -> int:
    """So that a kernel that breaks the context breaks nothing else."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "needs_gpu", "-p", "no:cacheprovider", *places]
    try:
        return subprocess.run(command, cwd=ROOT, timeout=max(seconds, 1)).returncode
    except subprocess.TimeoutExpired:
        print(f"not done after {seconds:.0f} s")
        return 1


def _in_this_process(places: Sequence[str]) -> int:
    quiet = ["-q", "-x", "-m", "needs_gpu", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return int(pytest.main([f"--rootdir={ROOT}", *quiet, *(str(ROOT / p) if "/" in p else p for p in places)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
