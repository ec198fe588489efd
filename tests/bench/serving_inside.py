"""`python -m tests.bench.serving_inside [MODEL]`: how long a request is within the server, from bytes to bytes.

Linux's `perf` notes when the server has read a request from its socket and when it writes the answer: all that is
between is the server's, the model's run included, and nothing is the client's or the network's. One request at a time.
Needs `perf` and the right to trace system calls.
"""

import argparse
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.load import Load, grpc_load, grpc_request, http_load, http_request
from tests.bench.serving import ROOT, Child, children, random_arrays

READS = ("read", "recvmsg", "recvfrom")
WRITES = ("write", "writev", "sendmsg", "sendto")
EVENTS = [*(f"syscalls:sys_exit_{call}" for call in READS), *(f"syscalls:sys_enter_{call}" for call in WRITES)]
LEAST = 100
"""Bytes of a request; shorter reads are signals between threads, and of HTTP/2."""
_LINE = re.compile(r"\s*([\d.]+):\s+syscalls:sys_(exit|enter)_(\w+):\s*(.*)")
_SOCKET = re.compile(r"(?:count|len): (?:0x)?0*([0-9a-f]+)")


def inside(child: Child, load: Callable[[float], Load], seconds: float) -> list[float]:
    """Seconds of each request, sorted."""
    load(seconds)
    with tempfile.NamedTemporaryFile() as file:
        command = ["perf", "record", "-e", ",".join(EVENTS), "-o", file.name, "-p", str(child.process.pid)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as perf:
            time.sleep(0.5)
            load(seconds)
            perf.send_signal(signal.SIGINT)
        script = ["perf", "script", "-i", file.name, "--ns", "-F", "time,event,trace"]
        lines = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    return sorted(_pairs(lines))


def _pairs(lines: str) -> Iterator[float]:
    """From the end of each read of a request to the begin of the next write."""
    read: float | None = None
    for line in lines.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        at, what, call, rest = float(match[1]), match[2], match[3], match[4]
        if what == "exit":
            if LEAST <= int(rest.split()[-1], 0) < 1 << 40:
                read = at
        elif read is not None and not _is_signal(call, rest):
            yield at - read
            read = None


def _is_signal(call: str, rest: str) -> bool:
    """Whether a write wakes another thread: eight bytes, or one."""
    size = _SOCKET.search(rest)
    return call == "write" and size is not None and int(size[1], 16) <= 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, default=ROOT / "examples" / "digits.onnx")
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    with children([arguments.model], 0, 0) as found:
        child, model = found["onnxla"], arguments.model.stem
        arrays = random_arrays(child.get(f"/v2/models/{model}")["inputs"], 64)
        loads: dict[str, Callable[[float], Load]] = {
            "HTTP": lambda seconds: http_load(child.http, http_request(model, arrays), 1, seconds),
            "gRPC": lambda seconds: grpc_load(child.grpc, grpc_request(model, arrays), 1, seconds),
        }
        for name, load in loads.items():
            found_seconds = inside(child, load, arguments.seconds)
            p50, p99 = (found_seconds[int(len(found_seconds) * share)] * 1e6 for share in (0.5, 0.99))
            print(f"{name}: {len(found_seconds)} requests, within the server p50 {p50:.0f} us, p99 {p99:.0f} us")


if __name__ == "__main__":
    main()
