"""Compile jobs of one server: uploads, a bounded queue, so many compiles at once, one for equal models, results.

A model's bytes are only written and hashed in this process; whatever reads them is a child within limits. Everything
runs on the server's event loop, and what takes long (files, the store) on threads.
"""

import asyncio
import fcntl
import logging
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from onnxla.errors import FileError, InternalError, OnnxlaError
from onnxla.runtime.cache import CacheKey
from onnxla.runtime.cache_files import open_folder
from onnxla.serving.errors import InvalidRequestError, NotReadyError, OverloadedError
from onnxla.serving.jobs.child_process import ArchiveLimits
from onnxla.serving.jobs.compile_in_child import run_in_child
from onnxla.serving.jobs.errors import NoRoomError, NotDoneError, UnknownArtifactError, UnknownJobError
from onnxla.serving.jobs.job import Compile, Job, State
from onnxla.serving.jobs.key import artifact_key
from onnxla.serving.jobs.measurements import JobMeasurements
from onnxla.serving.jobs.outcome import Outcome
from onnxla.serving.jobs.programs import StoredPrograms
from onnxla.serving.jobs.request import CompileRequest
from onnxla.serving.jobs.settings import JobSettings
from onnxla.serving.jobs.store import Record, Store
from onnxla.serving.jobs.upload import receive

_KIND = "models"
_ID = re.compile(r"[0-9a-f]{16,64}")
_LATER = 5.0
"""After how many seconds it is worth another try where the queue is full."""
_LOG = logging.getLogger("onnxla.serving")


class Jobs:
    """Use it on one event loop; `await close()` at the end."""

    def __init__(self, settings: JobSettings) -> None:
        """Raises InputError, FileError for folders and stores that cannot be used."""
        self.settings = settings
        self.measurements = JobMeasurements()
        self._folder, self._lock = _own_folder(settings.folder)
        place = settings.store or str((settings.folder or self._folder) / "store")
        copies = (settings.folder or self._folder) / "copies"
        self.store = Store(place, copies, settings.store_bytes, settings.secret())
        self._programs = StoredPrograms(self.store) if settings.share_programs else None
        self._jobs: dict[str, Job] = {}
        self._compiles: dict[str, Compile] = {}
        """Those that go on, by the digests of their keys."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._uploads = 0
        self._free = asyncio.Semaphore(settings.running)
        self._is_closed = False

    async def submit(
        self, body: AsyncIterator[bytes], wanted: CompileRequest, name: str = "model.onnx", id: str | None = None
    ) -> Job:
        """A job for the model in `body`, an archive or a file called `name`. With an `id` of its own the client can
        cancel it, whether or not it hears of it.

        Raises OverloadedError where too many wait (before the body is read), TooLargeError, NotReadyError, NoRoomError,
        InvalidRequestError for an `id` that is none, or another job's.
        """
        if self._is_closed:
            raise NotReadyError("the server stops: compile elsewhere")
        id = secrets.token_hex(8) if id is None else id
        if not _ID.fullmatch(id) or id in self._jobs:
            raise InvalidRequestError(f"id={id[:64]!r}: 16 to 64 digits in hexadecimal are needed, of no other job")
        with self._place():
            folder = Path(tempfile.mkdtemp(prefix="upload-", dir=self._folder))
            try:
                model = folder / name
                try:
                    digest = await receive(body, model, self.settings.model_bytes)
                except OSError as error:
                    raise NoRoomError(f"the model cannot be received: {error.strerror or error}") from error
                key = await asyncio.to_thread(artifact_key, digest, name, wanted)
                compile = self._compiles.get(key.digest)
                if compile is None:
                    found = await asyncio.to_thread(self._stored, key)
                    compile = self._compiles.get(key.digest)  # which may have begun meanwhile
                    if compile is None:
                        compile = self._begin(Compile(key, model, wanted), found)
                return self._job(id, compile)
            finally:
                if not any(c.model.parent == folder for c in self._compiles.values()):
                    shutil.rmtree(folder, ignore_errors=True)

    def job(self, id: str) -> Job:
        """Raises UnknownJobError."""
        self._forget_old()
        if id not in self._jobs:
            raise UnknownJobError(f"there is no compile job {id[:64]!r}: it ended long ago, or never was")
        return self._jobs[id]

    def jobs(self) -> list[Job]:
        """All that are known, the newest first."""
        self._forget_old()
        return list(reversed(self._jobs.values()))

    def cancel(self, id: str) -> Job:
        """The client does not want it any more; the compile ends unless somebody else does."""
        job = self.job(id)
        if not job.state.is_final:
            job.is_cancelled = True
            self._finish(job)
            compile = job.compile
            compile.jobs.discard(id)
            if not compile.jobs:
                self._compiles.pop(compile.key.digest, None)  # nobody joins it any more
                if compile.task is not None:
                    compile.task.cancel()
            compile.changed()
        return job

    def outcome(self, id: str) -> Outcome:
        """What came of a job. Raises NotDoneError, UnknownJobError."""
        job = self.job(id)
        if not job.state.is_final:
            raise NotDoneError(f"compile job {id} is {job.state.value}: ask again when it has ended")
        if job.compile.outcome is None or job.is_cancelled:
            why = "it was cancelled" if job.compile.error is None else str(job.compile.error)
            raise NotDoneError(f"compile job {id} has no report: {why}")
        return job.compile.outcome

    async def artifact(self, digest: str) -> Path:
        """The file, verified. Raises UnknownArtifactError."""
        path = await asyncio.to_thread(self.store.get, digest)
        if path is None:
            raise UnknownArtifactError(f"there is no artifact {digest[:64]!r}")
        return path

    async def close(self) -> None:
        """End what goes on, and remove what is of no use to anybody else. Artifacts stay."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(shutil.rmtree, self._folder, True)
        self._lock.close()

    @contextmanager
    def _place(self) -> Iterator[None]:
        """A place among those that upload and wait."""
        busy = self._uploads + len(self._compiles)
        if busy >= self.settings.running + self.settings.waiting:
            self.measurements.refused += 1
            raise OverloadedError(f"{busy} models are being compiled or wait for it already", retry_after=_LATER)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    def _job(self, id: str, compile: Compile) -> Job:
        job = Job(id, compile)
        self._jobs[job.id] = job
        if compile.state.is_final:
            self._finish(job)
        else:
            compile.jobs.add(job.id)
        self._forget_old()
        return job

    def _finish(self, job: Job) -> None:
        """The job has come to its last state."""
        job.finished = time.time()
        self.measurements.finished[job.state.value] += 1

    def _stored(self, key: CacheKey) -> tuple[Record, Outcome] | None:
        """The artifact of this key and what came of its compile, where the store has both, whole."""
        record = self.store.record(_KIND, key)
        if record is None:
            return None
        try:
            outcome = Outcome(record.about)
        except OnnxlaError as error:
            _LOG.warning("a record of the store is not used: %s", error)
            return None
        return None if outcome.error is not None or self.store.get(record.sha256) is None else (record, outcome)

    def _begin(self, compile: Compile, found: tuple[Record, Outcome] | None) -> Compile:
        if found is not None:
            self.measurements.models_found += 1
            record, compile.outcome = found
            compile.sha256, compile.bytes, compile.cached = record.sha256, record.bytes, True
            compile.end(State.SUCCEEDED)
            return compile
        self.measurements.models_missed += 1
        self._compiles[compile.key.digest] = compile
        compile.task = asyncio.create_task(self._run(compile))
        self._tasks.add(compile.task)
        compile.task.add_done_callback(self._tasks.discard)
        return compile

    async def _run(self, compile: Compile) -> None:
        """The compile from its place in the queue to its end, whatever that is."""
        state, error = State.CANCELLED, None
        try:
            async with self._free:
                compile.state = State.RUNNING
                compile.changed()
                error = await self._compiled(compile)
                state = State.SUCCEEDED if error is None else State.FAILED
        except OnnxlaError as found:
            state, error = State.FAILED, found
        except asyncio.CancelledError:
            state, error = State.CANCELLED, None
        except Exception as found:
            _LOG.exception("a compile job failed in the server")
            state, error = State.FAILED, InternalError(f"the server failed: {type(found).__name__}: {found}")
        finally:
            if self._compiles.get(compile.key.digest) is compile:
                del self._compiles[compile.key.digest]
            compile.end(state, error)
            for id in compile.jobs:
                self._finish(self._jobs[id])
            compile.jobs.clear()
            shutil.rmtree(compile.model.parent, ignore_errors=True)

    async def _compiled(self, compile: Compile) -> OnnxlaError | None:
        """Compile and keep; gives why there is no artifact."""
        output = compile.model.parent / "out" / "model.onnxla"
        settings = self.settings
        start = time.perf_counter()
        try:
            outcome = await run_in_child(
                compile.model,
                compile.wanted,
                settings.limits,
                compile.tell,
                output=output,
                archive=ArchiveLimits(settings.unpacked_bytes, settings.unpacked_files),
                programs=self._programs,
            )
        finally:
            self.measurements.compile_seconds.add(time.perf_counter() - start)
        compile.outcome = outcome
        if outcome.error is None:
            if self._programs is not None:
                self.measurements.compiled(outcome)
            compile.bytes = output.stat().st_size
            compile.sha256 = await asyncio.to_thread(self._keep, compile.key, output, outcome)
        return outcome.error

    def _keep(self, key: CacheKey, artifact: Path, outcome: Outcome) -> str:
        digest = self.store.put(artifact)
        if all(report.is_final for report in outcome.reports):
            size = artifact.stat().st_size
            self.store.put_record(_KIND, key, Record(digest, size, dict(outcome.document)))
        return digest

    def _forget_old(self) -> None:
        ended = [job for job in self._jobs.values() if job.finished is not None]
        oldest = time.time() - self.settings.kept_seconds
        too_many = max(0, len(ended) - self.settings.kept_jobs)
        for k, job in enumerate(ended):
            if k < too_many or (job.finished is not None and job.finished < oldest):
                del self._jobs[job.id]


def _own_folder(folder: Path | None) -> tuple[Path, IO[bytes]]:
    """A folder for this server alone, and the lock that says so. What servers have left that are gone is removed."""
    try:
        if folder is None:
            own = Path(tempfile.mkdtemp(prefix="onnxla-jobs-"))
            return own, _locked(own / "lock")
        open_folder(folder)
        with _locked(folder / "lock"):
            for left in folder.glob("server-*"):
                with suppress(OSError), _locked(left / "lock", fcntl.LOCK_NB):
                    shutil.rmtree(left, ignore_errors=True)
            own = Path(tempfile.mkdtemp(prefix="server-", dir=folder))
            return own, _locked(own / "lock")
    except OSError as error:
        raise FileError(f"compile jobs need a folder: {error}") from error


def _locked(path: Path, flags: int = 0) -> IO[bytes]:
    """A file that nobody else can lock until it is closed. Raises OSError."""
    file = open(path, "wb")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | flags)
    except OSError:
        file.close()
        raise
    return file
