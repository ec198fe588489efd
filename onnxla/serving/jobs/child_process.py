"""One child process (`child.py`), from its start to its end: started, listened to, watched, killed, and what it left.

The thread that starts it waits for it too: where that thread ends, with this process or without, the system ends the
child.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from onnxla.config import ChildLimits
from onnxla.errors import FileError, InputError, InternalError, OnnxlaError, ResourceLimitError
from onnxla.files import open_file
from onnxla.runtime.cache_files import SUFFIX
from onnxla.serving.environment import child_environment
from onnxla.serving.jobs.blobs import DIGEST
from onnxla.serving.jobs.child import OUT_OF_MEMORY, memory_text
from onnxla.serving.jobs.outcome import Outcome
from onnxla.serving.jobs.processes import family, kill_session, usage
from onnxla.serving.jobs.request import CompileRequest
from onnxla.watch import Progress

_LOOK_EVERY = 0.05
"""Seconds between two looks at what the child takes."""
_LONGEST_LINE = 1 << 16
_KEPT_OF_ERRORS = 4096
_LARGEST_OUTCOME = 256 << 20
_MOST_PROGRAMS = 4096


@dataclass(frozen=True)
class ArchiveLimits:
    """What an archive may hold, unpacked."""

    most_bytes: int
    most_files: int


class Programs(Protocol):
    """Where compiled programs are kept by the digests of their keys."""

    def fetch(self, digest: str, path: Path) -> bool:
        """Put the program there, where it is known; gives whether it is. Raises nothing."""
        ...

    def keep(self, digest: str, path: Path) -> None:
        """The program at `path` is what was made for this key. Raises nothing."""
        ...


class ChildProcess:
    """One compile."""

    def __init__(
        self,
        source: Path,
        wanted: CompileRequest,
        limits: ChildLimits,
        output: Path,
        progress: Progress,
        *,
        knobs: Mapping[str, Any],
        archive: ArchiveLimits | None,
        programs: Programs | None,
    ) -> None:
        """`progress` and `programs` are called on the thread that calls `run`; the others as for `run_in_child`."""
        self._source = source
        self._wanted = wanted
        self._limits = limits
        self._output = output
        self._progress = progress
        self._knobs = knobs
        self._archive = archive
        self._programs = programs
        self._fetched: set[str] = set()
        self._cancelled = threading.Event()
        self._line = b""
        self._errors = b""

    def cancel(self) -> None:
        """End it soon. Any thread may call this."""
        self._cancelled.set()

    def run(self) -> Outcome:
        """Start it, wait for its end, and take what it left. Nothing of it is left afterwards but the artifact.

        Raises ResourceLimitError, InternalError, FileError; an OnnxlaError when it was cancelled.
        """
        try:
            self._output.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".compile-", dir=self._output.parent) as folder:
                return self._run_in(Path(folder).absolute())
        except OSError as error:
            raise FileError(f"cannot compile to {self._output}: {error.strerror or error}") from error

    def _run_in(self, folder: Path) -> Outcome:
        artifact, outcome, request = folder / "artifact.onnxla", folder / "outcome.json", folder / "request.json"
        cache = folder / "programs"
        document = {
            "source": os.path.abspath(self._source),
            "compile": self._wanted.to_json(),
            "knobs": {**self._knobs, **({} if self._programs is None else {"cache_dir": str(cache)})},
            "unpack": None if self._archive is None else asdict(self._archive),
            "asks": self._programs is not None,
            "limits": asdict(self._limits),
            "artifact": str(artifact),
            "outcome": str(outcome),
        }
        request.write_text(json.dumps(document))
        process = self._start(folder, request)
        try:
            self._watch(process, cache)
        finally:
            kill_session(process.pid)
            code = process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                assert pipe is not None
                pipe.close()
        found = self._outcome(outcome, code)
        if found.error is None:
            os.replace(artifact, self._output)
            self._keep_programs(cache)
        return found

    def _keep_programs(self, cache: Path) -> None:
        if self._programs is not None:
            for path in sorted(cache.glob(f"*{SUFFIX}"))[:_MOST_PROGRAMS]:
                if path.stem not in self._fetched and path.is_file() and not path.is_symlink():
                    self._programs.keep(path.stem, path)

    def _start(self, folder: Path, request: Path) -> "subprocess.Popen[bytes]":
        # In the root folder, and without the current one among the places of modules: no file of a model is imported.
        return subprocess.Popen(
            [sys.executable, "-m", "onnxla.serving.jobs.child", str(os.getpid()), str(request)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=child_environment(TMPDIR=str(folder)),
            start_new_session=True,
            bufsize=0,
        )

    def _watch(self, process: "subprocess.Popen[bytes]", cache: Path) -> None:
        """Until it has ended, though nobody has waited for it. Raises ResourceLimitError, OnnxlaError."""
        end = time.monotonic() + self._limits.wall_seconds
        with selectors.DefaultSelector() as selector:
            hear = partial(self._hear, process, cache)
            selector.register(process.stdout, selectors.EVENT_READ, hear)  # type: ignore[arg-type]
            selector.register(process.stderr, selectors.EVENT_READ, self._hear_errors)  # type: ignore[arg-type]
            looked = 0.0
            while not _has_ended(process.pid):
                self._listen(selector)
                if self._cancelled.is_set():
                    raise OnnxlaError("the compile was cancelled")
                now = time.monotonic()
                if now > end:
                    raise ResourceLimitError(
                        f"compiling takes longer than wall_seconds={self._limits.wall_seconds:g}; "
                        "a larger limit allows more"
                    )
                if now - looked >= _LOOK_EVERY:
                    looked = now
                    self._look(process.pid)
            while self._listen(selector, wait=0):
                pass  # what is left in the pipes

    def _listen(self, selector: selectors.BaseSelector, wait: float = _LOOK_EVERY) -> bool:
        """Take what the child says, and wait for it so long. Gives whether there was anything."""
        if not selector.get_map():
            time.sleep(wait)
            return False
        ready = selector.select(wait)
        for key, _ in ready:
            data = os.read(key.fd, 1 << 16)
            if data:
                key.data(data)
            else:
                selector.unregister(key.fileobj)
        return bool(ready)

    def _hear(self, process: "subprocess.Popen[bytes]", cache: Path, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        try:
            for line in lines:
                said = json.loads(line)
                if "want" in said:
                    self._answer(process, cache, str(said["want"]))
                else:
                    stage, part = said["progress"]
                    self._progress(str(stage), min(1.0, max(0.0, float(part))))
        except (ValueError, KeyError, TypeError) as error:
            raise InternalError(f"the process that compiles says what nobody understands: {error!r}") from error
        if len(self._line) > _LONGEST_LINE:
            raise InternalError("the process that compiles says more than anybody wants to know")

    def _answer(self, process: "subprocess.Popen[bytes]", cache: Path, digest: str) -> None:
        """Put the program where the child looks for it, if it is known, and say so."""
        if self._programs is None or not DIGEST.fullmatch(digest):
            raise ValueError(f"{digest!r} is no digest")
        known = self._programs.fetch(digest, cache / f"{digest}{SUFFIX}")
        self._fetched |= {digest} if known else set()
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended
            process.stdin.write(b"true\n" if known else b"false\n")

    def _hear_errors(self, data: bytes) -> None:
        self._errors = (self._errors + data)[-_KEPT_OF_ERRORS:]

    def _look(self, pid: int) -> None:
        """Raises ResourceLimitError where the family takes too much."""
        taken, limits = usage(family(pid)), self._limits
        if taken.memory_bytes > limits.memory_bytes:
            raise ResourceLimitError(memory_text(limits))
        if taken.cpu_seconds > limits.cpu_seconds:
            raise ResourceLimitError(_cpu_text(limits))

    def _outcome(self, path: Path, code: int) -> Outcome:
        """What it left in its file. Raises ResourceLimitError, InternalError where it left none."""
        try:
            with open_file(path) as file:
                data = file.read(_LARGEST_OUTCOME + 1)
            if len(data) > _LARGEST_OUTCOME:
                raise ResourceLimitError(f"the report of the compile is larger than {_LARGEST_OUTCOME} bytes")
            return Outcome(json.loads(data))
        except FileNotFoundError:
            raise self._crash(code) from None
        except (ValueError, InputError) as error:
            raise InternalError(f"the report of the compile is damaged: {error}") from error

    def _crash(self, code: int) -> OnnxlaError:
        """What a process that left nothing died of."""
        said = self._errors.decode(errors="replace").strip()
        if code == -signal.SIGXCPU:
            return ResourceLimitError(_cpu_text(self._limits))
        if code == -signal.SIGKILL:
            return ResourceLimitError("the compile was killed by the system, which does so when its memory runs out")
        if any(text in said for text in OUT_OF_MEMORY):
            return ResourceLimitError(memory_text(self._limits))
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return InternalError(f"the process that compiles crashed ({how})" + (f": {said}" if said else ""))


def _cpu_text(limits: ChildLimits) -> str:
    return f"compiling takes more CPU time than cpu_seconds={limits.cpu_seconds:g}; a larger limit allows more"


def _has_ended(pid: int) -> bool:
    """Whether a child of this process has ended; nobody has waited for it, so its number is still its own."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
