"""`python -m tests.gpu.run_conformance`: ONNX's own tests through the GPU path, on the simulated device, by hand.

All of them take half an hour, which is too long for every change; `tests/gpu/test_conformance.py` runs a test of each
operator. `--seconds` is the most processor time that one may take. With `--results FILE` each result is a line of FILE
as soon as it is known, and what is there already is not run again; `--table docs/gpu-conformance.md` writes the page
about all results. What does not pass is printed with its reason, and the exit status is 1 where that is none of
`known_reason`.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from onnxla.conformance.cases import SUITES, case_index, operator_of, read_case
from onnxla.conformance.suite import run_suite
from onnxla.runtime import cuda_device
from tests.conformance.test_onnx_suite import NOISE
from tests.gpu.simulated_device import SimulatedDevice
from tests.gpu.test_conformance import REJECTED, TOO_LONG

_HEAD = """# ONNX's own tests on the GPU path, simulated

Written by `python -m tests.gpu.run_conformance --table docs/gpu-conformance.md`. Each test is compiled for a GPU; the
PTX that NVRTC made of it runs twice in [the simulator](gpu.md#how-it-is-tested-without-a-gpu) with the same bits,
without a race, an access out of bounds or another fault, and its results are within the test's own tolerance. Nothing
ran on hardware. `tests/gpu/test_conformance.py` holds a test of each operator; `onnxla conformance --target gpu` runs
all of them on a GPU.
"""


class TooLong(BaseException):
    """A test has run for longer than it may; no kind of Exception, which the runner takes for a failure."""


@dataclass(frozen=True)
class Row:
    """What came of a test."""

    name: str
    operator: str
    suite: str
    status: str
    """`pass`, `reject`, `fail`, or `too long`."""
    said: str
    seconds: float
    """Of processor time."""

    @property
    def reason(self) -> str:
        """Why the test need not pass; empty where it must."""
        if self.operator in REJECTED and self.status == "reject":
            return "data decide a shape, on the CPU too"
        if self.name in TOO_LONG and self.status == "too long":
            return f"too long to simulate; a smaller twin: {TOO_LONG[self.name]}"
        if self.name in NOISE and self.status == "fail":
            return "rounding errors are expected, on the CPU too"
        return ""


def run(name: str, seconds: float) -> Row:
    """The result of a test that may take so much processor time."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        result = next(run_suite([name], device="CUDA"))
    except TooLong:
        case = read_case(name)
        return Row(name, operator_of(case), case.suite, "too long", "", seconds)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    outcome = result.outcome
    said = f"{outcome.kind}: {' '.join(outcome.message.split())[:300]}" if outcome.status != "pass" else ""
    return Row(name, result.operator, result.suite, outcome.status, said, round(result.seconds, 2))


def results(names: Sequence[str], seconds: float, file: Path | None) -> Iterator[Row]:
    """Of each test, those that `file` has as they are there."""
    known = {}
    if file is not None and file.exists():
        known = {row["name"]: Row(**row) for row in map(json.loads, file.read_text().splitlines())}
    for name in names:
        row = known.get(name)
        if row is None:
            row = run(name, seconds)
            if file is not None:
                with file.open("a") as lines:
                    lines.write(json.dumps(asdict(row)) + "\n")
        yield row


def page(rows: Sequence[Row]) -> str:
    """The table by operator, and what did not pass."""
    passed = sum(row.status == "pass" for row in rows)
    total = sum(row.seconds for row in rows)
    lines = [
        _HEAD,
        f"{len(rows)} tests: {passed} pass. All of them take {total / 60:.0f} minutes of a processor's time.",
        "",
    ]
    lines += ["| suite | tests | pass |", "| --- | --: | --: |"]
    lines += [_line(suite, [row for row in rows if row.suite == suite]) for suite in SUITES]
    lines += ["", "## Not passed", "", "| test | status | reason |", "| --- | --- | --- |"]
    lines += [f"| {r.name} | {r.status} | {r.reason or r.said} |" for r in rows if r.status != "pass"]
    lines += ["", "## By operator", "", "| operator | tests | pass |", "| --- | --: | --: |"]
    operators = sorted({row.operator for row in rows}, key=lambda name: (name.startswith("("), name.lower()))
    lines += [_line(name, [row for row in rows if row.operator == name]) for name in operators]
    return "\n".join(lines) + "\n"


def _line(name: str, rows: Sequence[Row]) -> str:
    return f"| {name} | {len(rows)} | {sum(row.status == 'pass' for row in rows) or ''} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="words in the names of the tests to run; all without")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    cuda_device.CudaDevice = SimulatedDevice  # type: ignore[assignment, misc]
    order = sorted(case_index(), key=lambda name: (name in TOO_LONG, name))
    names = [n for n in order if not options.names or any(w in n for w in options.names)]
    rows = []
    for row in results(names, options.seconds, options.results):
        rows.append(row)
        if row.status != "pass":
            print(
                f"{row.reason or 'NOT KNOWN'} | {row.name} ({row.seconds:.0f} s): {row.status} {row.said}", flush=True
            )
    if options.table is not None:
        options.table.write_text(page(rows))
    unknown = sum(row.status != "pass" and not row.reason for row in rows)
    print(f"{len(rows)} tests, {sum(row.status == 'pass' for row in rows)} pass, {unknown} without a reason")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
