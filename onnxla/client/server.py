"""`CompileServer`: a server of compile jobs, as if `onnxla.compile` ran here."""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from onnxla.client.http import Connection
from onnxla.client.package import Package, package
from onnxla.error_json import error_of_json
from onnxla.errors import ArtifactError, FileError, ServiceError
from onnxla.files import writing
from onnxla.serving.jobs.outcome import Outcome
from onnxla.serving.jobs.request import CompileRequest
from onnxla.watch import Progress

_WAIT = 10.0
"""Seconds that the server may let us wait for news."""
_TRIES = 5
_CHUNK = 1 << 20
_CONNECT = 60.0
"""Seconds without a byte after which a server does not answer."""
_LAST_WORDS = 5.0
"""Seconds that cancelling may take."""
_SENT, _COMPILED = 0.1, 0.95
"""Which part of the work sending the model is, and that with all of the compile."""


class CompileServer:
    """A server at an address. Any number of threads may use it."""

    def __init__(self, url: str, *, token: str | None = None, ca_file: str | os.PathLike[str] | None = None) -> None:
        """`token` is the server's for admin calls; `ca_file` has certificates (PEM) to trust in place of the system's.

        Raises InputError.
        """
        self._connection = Connection(url, token, None if ca_file is None else Path(ca_file), _CONNECT)

    def compile(
        self,
        model: str | os.PathLike[str],
        output: str | os.PathLike[str],
        *,
        progress: Progress | None = None,
        **wanted: Any,
    ) -> Outcome:
        """Compile the model in a file or a SavedModel's folder there, and write the artifact to `output`.

        `wanted` are keyword arguments of `onnxla.compile`: target, shapes, dims, constants, options, num_threads,
        signature, inputs, outputs, fallback. Whatever ends this function early, Ctrl-C too, cancels the job.

        Raises what `onnxla.compile` raises, ServiceError, FileError for `output`, and ArtifactError for an artifact
        that came damaged.
        """
        tell = progress or (lambda stage, part: None)
        request = CompileRequest(**wanted)
        sent = package(Path(model), _for_this_machine(request).to_json())
        id = secrets.token_hex(16)
        try:
            job = self._wait(self._submit(id, sent, tell), tell)
        except ServiceError:
            raise  # nobody is there to be told
        except BaseException:
            with suppress(Exception):
                self._connection.json("DELETE", f"/v2/compile/{id}", timeout=_LAST_WORDS)
            raise
        if job["state"] == "CANCELLED":
            raise ServiceError(f"compile job {job['id']} was cancelled on the server")
        if job["state"] != "SUCCEEDED":
            raise error_of_json(job["error"])
        outcome = Outcome(self._connection.json("GET", f"/v2/compile/{job['id']}/result"))
        self._download(job["artifact"], Path(output), tell)
        tell("done", 1.0)
        return outcome

    def _submit(self, id: str, sent: Package, tell: Progress) -> Any:
        query = {"id": id, "name": sent.name if sent.options is not None else "model.tar"}
        if sent.options is not None:
            query["options"] = json.dumps(sent.options)
        headers = {"content-length": str(sent.size), "content-type": "application/octet-stream"}

        def body() -> Iterator[bytes]:
            done = 0
            for chunk in sent.chunks():
                yield chunk
                done += len(chunk)
                tell("sending the model", _SENT * done / sent.size)

        with self._connection.request("POST", f"/v2/compile?{urlencode(query)}", body(), headers) as answer:
            return _job(self._connection.json_of(answer))

    def _wait(self, job: Any, tell: Progress) -> Any:
        """The job when it has ended. Connections that break are made again."""
        failures = 0
        while job["state"] in ("QUEUED", "RUNNING"):
            stage = str(job["stage"]) or ("waiting for the server" if job["state"] == "QUEUED" else "starting")
            tell(stage, _SENT + (_COMPILED - _SENT) * min(1.0, float(job["progress"])))
            path = f"/v2/compile/{job['id']}?wait={_WAIT:g}&revision={job['revision']}"
            try:
                job = _job(self._connection.json("GET", path))
                failures = 0
            except ServiceError as error:
                failures += 1
                if error.__cause__ is None or failures == _TRIES:
                    raise  # an answer, though not a good one; or none for long
                time.sleep(0.2 * 2**failures)
        return job

    def _download(self, artifact: Mapping[str, Any], output: Path, tell: Progress) -> None:
        """Write the artifact, whole or not at all; a connection that breaks goes on where it was."""
        size, digest = int(artifact["bytes"]), hashlib.sha256()

        def take(chunk: bytes) -> None:
            file.write(chunk)
            digest.update(chunk)
            tell("fetching the artifact", _COMPILED + (1 - _COMPILED) * file.tell() / size)

        try:
            with writing(output) as file:
                for attempt in range(_TRIES):
                    try:
                        self._fetch(artifact, file.tell(), take)
                    except ServiceError as error:
                        if error.__cause__ is None or attempt + 1 == _TRIES:
                            raise  # an answer, and a no; or none for long
                    if file.tell() == size:
                        break
                if digest.hexdigest() != artifact["sha256"]:
                    raise ArtifactError("the artifact that came is not the one that was made: it is damaged")
        except OSError as error:
            raise FileError(f"cannot write {output}: {error.strerror or error}") from error

    def _fetch(self, artifact: Mapping[str, Any], begin: int, take: Callable[[bytes], None]) -> None:
        """The rest of the artifact, from `begin` on, as far as it comes. Raises ServiceError."""
        left = int(artifact["bytes"]) - begin
        headers = {"range": f"bytes={begin}-", "if-range": f'"{artifact["sha256"]}"'} if begin else {}
        with self._connection.request("GET", artifact["url"], headers=headers) as answer:
            if begin and answer.status != HTTPStatus.PARTIAL_CONTENT:
                raise ServiceError(f"{self._connection.url} does not go on where it was interrupted")
            while left and (chunk := self._connection.read(answer, min(_CHUNK, left))):
                left -= len(chunk)
                take(chunk)


def _for_this_machine(request: CompileRequest) -> CompileRequest:
    """The request with this machine's CPU, where it says no other."""
    from onnxla.codegen.cpu.target import host_target

    if request.compile_options().target_cpu != "host":
        return replace(request, options={**request.options, "target_cpu": request.compile_options().target_cpu})
    return replace(request, options={**request.options, "target_cpu": str(host_target())})


def _job(document: Any) -> Any:
    """A job as the server tells it. Raises ServiceError for what is none."""
    try:
        if not isinstance(document["id"], str) or not document["id"].isalnum():
            raise ValueError("its number is none")
        _ = int(document["revision"]), float(document["progress"]), document["stage"], document["error"]
        if document["state"] == "SUCCEEDED":
            artifact = document["artifact"]
            if not all(isinstance(artifact[name], str) for name in ("sha256", "url")) or int(artifact["bytes"]) <= 0:
                raise ValueError("its artifact is none")
        return document
    except (KeyError, TypeError, ValueError) as error:
        raise ServiceError(f"the server's answer is no compile job: {error!r}") from error
