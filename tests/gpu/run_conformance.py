"""`python -m tests.gpu.run_conformance`: ONNX's own tests through the GPU path, on the simulated device, by hand.

All of them take half an hour, which is too long for every change; `tests/gpu/test_conformance.py` runs a test of each
operator. `--seconds` is the most processor time that one may take, `--part 1/2` runs the first of every two. What
does not pass is printed with its reason, and the exit status is 1 where that is none of `known_reason`.
"""

import argparse
import signal
import sys
import time
from collections import Counter
from types import FrameType

from onnxla.conformance.cases import case_index, operator_of, read_case
from onnxla.conformance.suite import Result, run_suite
from onnxla.runtime import cuda_device
from tests.conformance.test_onnx_suite import NOISE
from tests.gpu.simulated_device import SimulatedDevice
from tests.gpu.test_conformance import REJECTED, ROUNDED, TOO_LONG


class TooLong(BaseException):
    """A test has run for longer than it may; no kind of Exception, which the runner takes for a failure."""


def known_reason(name: str, operator: str, status: str) -> str:
    """Why a test need not pass; empty where it must."""
    if operator in REJECTED and status == "reject":
        return "data decide a shape"
    if name in TOO_LONG and status == "too long":
        return "too long to simulate"
    if name in ROUNDED:
        return "rounded to half precision between kernels"
    if name in NOISE:
        return "rounding errors are expected, as on the CPU"
    return ""


def run(name: str, seconds: float) -> Result | None:
    """The result of a test; None where it takes longer than `seconds`."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return next(run_suite([name], device="CUDA"))
    except TooLong:
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="words in the names of the tests to run; all without")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--part", default="1/1")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    cuda_device.CudaDevice = SimulatedDevice  # type: ignore[assignment, misc]
    names = [n for n in sorted(case_index()) if not options.names or any(w in n for w in options.names)]
    tally: Counter[str] = Counter()
    for name in names[part - 1 :: parts]:
        begin = time.process_time()
        result = run(name, options.seconds)
        outcome = None if result is None else result.outcome
        status = "too long" if outcome is None else outcome.status
        took = time.process_time() - begin
        if status != "pass":
            reason = known_reason(name, operator_of(read_case(name)), status)
            tally["known" if reason else "not known"] += 1
            said = "" if outcome is None else f": {outcome.kind}: {' '.join(outcome.message.split())[:300]}"
            print(f"{reason or 'NOT KNOWN':<44} {name} ({took:.0f} s): {status}{said}", flush=True)
        tally[status] += 1
    print(", ".join(f"{count} {status}" for status, count in sorted(tally.items())))
    return 1 if tally["not known"] else 0


if __name__ == "__main__":
    sys.exit(main())
