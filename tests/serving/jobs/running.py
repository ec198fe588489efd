"""A server with compile jobs, and a client of the kind that anybody writes."""

import http.client
import json
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from onnxla.config import ChildLimits
from onnxla.serving.jobs.manager import Jobs
from onnxla.serving.jobs.metrics import JobMetrics
from onnxla.serving.jobs.routes import PATHS, routes
from onnxla.serving.jobs.settings import JobSettings
from onnxla.serving.server import Server
from tests.serving.running import LONGEST, Running
from tests.serving.small_engine import SmallEngine

LIMITS = ChildLimits(wall_seconds=LONGEST, niceness=0)


class JobServer(Running):
    """`with JobServer(folder=tmp_path) as server:`; arguments are those of `JobSettings`, `server` the server's."""

    def __init__(self, *, server: dict[str, Any] | None = None, **settings: Any) -> None:
        super().__init__(SmallEngine, grpc_port=-1, **(server or {}))
        self._jobs_settings = JobSettings(**{"limits": LIMITS, **settings})
        self.jobs: Jobs

    async def _start(self) -> None:
        self.engine = self._make()
        self.jobs = Jobs(self._jobs_settings)
        self.server = Server(self.engine, self._settings, admin_routes=routes(self.jobs), admin_paths=PATHS)
        self.server.calls.metrics.register(JobMetrics(self.jobs))
        await self.server.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.do(self.jobs.close())
        super().__exit__(kind, error, at)

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers in lower case, and body of the answer."""
        connection = http.client.HTTPConnection(self.http, timeout=LONGEST)
        try:
            connection.request(method, path, body, {n.replace("_", "-"): v for n, v in headers.items()})
            answer = connection.getresponse()
            return answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: bytes | None = None, *, status: int = 200) -> Any:
        """The answer's JSON, where its status is this one."""
        found, _, text = self.ask(method, path, body)
        assert found == status, (found, text)
        return json.loads(text)

    def submit(self, model: Path | bytes, query: str = "") -> Any:
        data = model if isinstance(model, bytes) else model.read_bytes()
        return self.json("POST", f"/v2/compile{query}", data, status=202)

    def finished(self, job: Any) -> Any:
        """The job when it has ended."""
        end = time.monotonic() + LONGEST
        while job["state"] in ("QUEUED", "RUNNING"):
            assert time.monotonic() < end, job
            job = self.json("GET", f"/v2/compile/{job['id']}?wait=10&revision={job['revision']}")
        return job
