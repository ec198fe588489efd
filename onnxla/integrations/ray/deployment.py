"""A Ray Serve deployment: each replica is the serving engine with one model, behind the Open Inference Protocol.

Requests come over Serve's HTTP proxies (JSON or binary tensors) or by a handle, in numpy arrays; the engine puts those
together that are there at the same time, along rows that are proven independent, and takes the results apart again.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ray import serve
from starlette.requests import Request
from starlette.responses import Response

from onnxla.errors import ArtifactError, InputError
from onnxla.given import number
from onnxla.integrations.ray.shared_model import SharedModel, assigned_threads, share
from onnxla.serving.access import Access
from onnxla.serving.calls import Calls
from onnxla.serving.engine import ServingEngine
from onnxla.serving.errors import NotReadyError
from onnxla.serving.http.app import App
from onnxla.serving.http.body import Bodies
from onnxla.serving.requests import InferRequest
from onnxla.serving.server_settings import ServerSettings
from onnxla.serving.settings import EngineSettings

_DRAIN_SECONDS = 10.0


class OnnxlaReplica:
    """One replica. `deployment` makes the Serve deployment of it."""

    async def __init__(  # type: ignore[misc]  # Serve awaits it
        self, shared: SharedModel, name: str, config: str, tokens: Sequence[str] = ()
    ) -> None:
        """Raises ArtifactError where the model cannot run on this node, or the configuration does not fit it."""
        self._name = name
        path = await asyncio.to_thread(shared.on_this_node)
        self._folder = tempfile.mkdtemp(prefix="onnxla-ray-")
        place = Path(self._folder) / name / "1"
        place.mkdir(parents=True)
        (place.parent / "config.pbtxt").write_text(
            f'{config}\nparameters {{ key: "num_threads" value {{ string_value: "{assigned_threads()}" }} }}\n'
        )
        try:
            os.link(path, place / "model.onnxla")  # the same file, so that workers map the same pages
        except OSError:
            shutil.copyfile(path, place / "model.onnxla")
        self._engine = ServingEngine(EngineSettings(Path(self._folder)))
        await self._engine.start()
        if not self._engine.model_ready(name):
            reasons = "; ".join(line.reason for line in self._engine.index())
            await self._close()
            raise ArtifactError(f"model {name} is not served: {reasons}")
        settings = ServerSettings()
        bodies = Bodies(settings.max_request_bytes, settings.max_body_bytes_in_flight)
        self._app = App(Calls(self._engine, settings, Access(tokens)), bodies)

    async def infer(
        self, inputs: Mapping[str, Any], outputs: Sequence[str] | None = None, id: str = ""
    ) -> dict[str, Any]:
        """The outputs (all for None) by name, for a handle: `await handle.infer.remote({"x": x})`.

        Raises ServingErrors (`onnxla.serving.errors`).
        """
        wanted = None if outputs is None else tuple(outputs)
        response = await self._engine.infer(InferRequest(self._name, inputs, outputs=wanted, id=id))
        return dict(response.outputs)

    async def __call__(self, request: Request) -> Response:
        """The Open Inference Protocol below the application's prefix."""
        path = request.scope["path"].removeprefix(request.scope.get("root_path", "")) or "/"
        address = request.client.host if request.client else ""
        transport = SimpleNamespace(is_closing=lambda: False)
        connection = SimpleNamespace(address=address, request=None, patient=False, too_slow=False, transport=transport)
        answer = Response()
        body: list[bytes] = []

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.status_code, answer.raw_headers = message["status"], list(message["headers"])
            else:
                body.append(message.get("body", b""))

        await self._app({**request.scope, "path": path, "connection": connection}, request.receive, send)
        answer.body = b"".join(body)
        return answer

    async def statistics(self) -> dict[str, Any]:
        """Which replica this is, its requests, and its runs of the model: fewer where they were put together."""
        (one,) = self._engine.statistics(self._name)
        replica = serve.get_replica_context().replica_id.unique_id
        return {"replica": replica, "requests": one.success.count, "rows": one.inferences, "runs": one.executions}

    def check_health(self) -> None:
        """Raises NotReadyError where Serve should replace this replica."""
        if not self._engine.model_ready(self._name):
            raise NotReadyError(f"model {self._name} is not ready")

    async def __del__(self) -> None:
        await self._engine.drain(_DRAIN_SECONDS)
        await self._close()

    async def _close(self) -> None:
        await self._engine.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def deployment(
    model: Any,
    *,
    name: str = "model",
    max_batch_size: int = 0,
    batch_delay: float = 0.0,
    config: str = "",
    tokens: Sequence[str] = (),
    num_replicas: int | str | None = None,
    autoscaling_config: Mapping[str, Any] | None = None,
    max_ongoing_requests: int | None = None,
    ray_actor_options: Mapping[str, Any] | None = None,
    serve_options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Any:
    """The application for `serve.run`: `model` is what `share` returned, or what it takes, with its `arguments`.

    `name` is the model's in the protocol. With `max_batch_size` requests that are there at the same time run together,
    where one may wait `batch_delay` seconds for others. `config` is more of Triton's ModelConfig in text, `tokens`
    those that HTTP requests must bring. `num_replicas`, `autoscaling_config`, `max_ongoing_requests` (by default four
    batches) and `ray_actor_options` (by default one CPU) are Serve's, as are further `serve_options`; a replica uses as
    many threads as it has CPUs.

    Raises what `share` raises.
    """
    if not isinstance(model, SharedModel):
        model = share(model, max_batch_size=max_batch_size, durable=True, **arguments)
    elif arguments:
        raise InputError(f"the model is shared already: {', '.join(arguments)} come too late")
    most = max_batch_size or model.max_batch_size
    if most > 1:
        delay = round(number(batch_delay, "batch_delay") * 1e6)
        config = (
            f"max_batch_size: {most}\ndynamic_batching {{ max_queue_delay_microseconds: {delay} }}\n"
            f'parameters {{ key: "batch_dimension" value {{ string_value: "{model.batch_dimension}" }} }}\n{config}'
        )
    options: dict[str, Any] = {
        "name": name,
        "max_ongoing_requests": max_ongoing_requests or 4 * max(most, 4),
        "ray_actor_options": {"num_cpus": 1, **dict(ray_actor_options or {})},
        "health_check_period_s": 10,
        "graceful_shutdown_timeout_s": 2 * _DRAIN_SECONDS,
        **dict(serve_options or {}),
    }
    if autoscaling_config is not None:
        options["autoscaling_config"] = dict(autoscaling_config)
    elif num_replicas is not None:
        options["num_replicas"] = num_replicas
    return serve.deployment(OnnxlaReplica).options(**options).bind(model, name, config, tuple(tokens))
