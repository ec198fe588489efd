"""The process that compiles one model: `python -m onnxla.serving.jobs.child PARENT REQUEST`.

It reads the file REQUEST, what to compile and within which limits, and talks in lines of JSON on what was its standard
output: `{"progress": [stage, part]}`, and `{"want": digest}` where it misses a program that somebody may have compiled,
which is answered by a line on standard input when the program is in its cache's folder, or nobody has it. It leaves the
artifact and, in a file beside it, what became of the compile; a process that ends without that file has crashed. Prints
of libraries go to standard error.
"""

import ctypes
import errno
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from onnxla.codegen.workers import die_with_parent
from onnxla.config import ChildLimits
from onnxla.errors import OnnxlaError, ResourceLimitError
from onnxla.files import write_file

_TELL_EVERY = 0.05
"""Seconds between two lines about the progress."""
_PR_SET_NO_NEW_PRIVS = 38
OUT_OF_MEMORY = ("out of memory", "bad_alloc", "MemoryError", "no memory for")
"""How libraries and workers say it."""


def main() -> int:
    die_with_parent()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", 0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.loads(Path(sys.argv[2]).read_bytes())
    limits = ChildLimits(**request["limits"])
    _take_limits(limits)
    artifact, outcome = Path(request["artifact"]), Path(request["outcome"])
    try:
        document = _compiled(request, artifact, answers)
    except (OnnxlaError, MemoryError) as error:
        document = _failure(error, limits)
    write_file(outcome, json.dumps(document))
    return 0


def _take_limits(limits: ChildLimits) -> None:
    """What the system holds, for this process and for each that it starts. The parent holds their sums.

    Memory is what may be written to: maps of the model and of libraries do not count, which an address space's limit
    would count too.
    """
    for kind, most in (
        (resource.RLIMIT_DATA, limits.memory_bytes),
        (resource.RLIMIT_CPU, int(limits.cpu_seconds) + 1),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    os.nice(limits.niceness)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        with suppress(OSError):  # where the system itself runs out of memory, this process goes first
            Path("/proc/self/oom_score_adj").write_text("1000")


def _teller(answers: IO[bytes]) -> Callable[[str, float], None]:
    last = 0.0

    def tell(stage: str, part: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _TELL_EVERY:
            last = now
            answers.write(json.dumps({"progress": [stage[:200], part]}).encode() + b"\n")

    return tell


def _compiled(request: dict[str, Any], artifact: Path, answers: IO[bytes]) -> dict[str, Any]:
    """Unpack, compile, save, and say what came of it. The compiler is imported here, under the limits."""
    from onnxla.runtime.cache import supplied_by
    from onnxla.serving.jobs.compile_and_save import compile_and_save
    from onnxla.serving.jobs.request import request_of_json
    from onnxla.serving.jobs.unpack import is_archive, unpack

    source, wanted = Path(request["source"]), request["compile"]
    if request["unpack"] is not None and is_archive(source):
        unpacked = unpack(source, artifact.parent / "model", **request["unpack"])
        source = unpacked.model
        wanted = wanted if unpacked.options is None else unpacked.options
    with supplied_by(_asker(answers)) if request["asks"] else nullcontext():
        return compile_and_save(source, request_of_json(wanted), artifact, _teller(answers), request["knobs"])


def _asker(answers: IO[bytes]) -> Callable[[str, Path], bool]:
    def ask(digest: str, path: Path) -> bool:
        answers.write(json.dumps({"want": digest}).encode() + b"\n")
        return sys.stdin.buffer.readline() == b"true\n"

    return ask


def _failure(error: OnnxlaError | MemoryError, limits: ChildLimits) -> dict[str, Any]:
    """The error as JSON; as a limit's, where a limit of the process is behind it."""
    from onnxla.error_json import error_json

    chain: list[BaseException] = [error]
    for link in chain:  # __cause__ and __context__ may lead in circles
        chain += [e for e in (link.__cause__, link.__context__) if e is not None and e not in chain]
    numbers = {link.errno for link in chain if isinstance(link, OSError)}
    no_memory = any(isinstance(link, MemoryError) for link in chain) or errno.ENOMEM in numbers
    if no_memory or any(text in str(error) for text in OUT_OF_MEMORY):
        error = ResourceLimitError(memory_text(limits, str(error)))
    elif errno.EFBIG in numbers:
        error = ResourceLimitError(
            f"the compile writes a file larger than file_bytes={limits.file_bytes}; a larger limit allows more"
        )
    assert isinstance(error, OnnxlaError)
    return {"error": error_json(error)}


def memory_text(limits: ChildLimits, cause: str = "") -> str:
    why = f" ({cause})" if cause else ""
    return f"compiling takes more than memory_bytes={limits.memory_bytes} of memory{why}; a larger limit allows more"


if __name__ == "__main__":
    sys.exit(main())
