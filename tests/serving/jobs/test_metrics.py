"""What Prometheus reads of compile jobs."""

from pathlib import Path

import pytest

from tests.serving.jobs import models
from tests.serving.jobs.running import JobServer
from tests.serving.jobs.test_jobs import Gate


def numbers(server: JobServer) -> dict[str, float]:
    """Those of jobs and of the store, by name and labels."""
    rows = [line.rpartition(" ") for line in server.ask("GET", "/metrics")[2].decode().splitlines()]
    return {name: float(value) for name, _, value in rows if name.startswith(("onnxla_job", "onnxla_store"))}


def test_jobs_are_counted_by_what_becomes_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    with JobServer(folder=tmp_path / "jobs", running=1, waiting=2) as server:
        first, joined, second = (server.submit(model) for model in (b"first", b"first", b"second"))
        third = server.submit(b"third")
        assert server.ask("POST", "/v2/compile", b"fourth")[0] == 429
        server.json("DELETE", f"/v2/compile/{second['id']}")
        server.json("DELETE", f"/v2/compile/{joined['id']}")
        found = numbers(server)
        assert found['onnxla_jobs{state="RUNNING"}'] == found['onnxla_jobs{state="QUEUED"}'] == 1
        assert found['onnxla_jobs_finished_total{state="CANCELLED"}'] == 2
        assert found["onnxla_jobs_refused_total"] == 1
        assert found["onnxla_job_compile_seconds_count"] == 0
        gate.open()
        assert [server.finished(one)["state"] for one in (first, third)] == ["FAILED"] * 2
        found = numbers(server)
        assert found['onnxla_jobs{state="RUNNING"}'] == found['onnxla_jobs{state="QUEUED"}'] == 0
        assert found['onnxla_jobs_finished_total{state="FAILED"}'] == 2
        assert found['onnxla_jobs_finished_total{state="SUCCEEDED"}'] == 0
        assert found["onnxla_job_compile_seconds_count"] == 2 and found["onnxla_job_compile_seconds_sum"] > 0
        assert found["onnxla_store_models_missed_total"] == 3 and found["onnxla_store_models_found_total"] == 0


def test_what_the_store_had_is_counted(tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx", rows="batch")
    with JobServer(folder=tmp_path / "jobs") as server:
        for query in ("?dim=batch=1", "?dim=batch=1", "?dim=batch=1,2"):
            assert server.finished(server.submit(model, query))["state"] == "SUCCEEDED"
        found = numbers(server)
        assert found['onnxla_jobs_finished_total{state="SUCCEEDED"}'] == 3
        assert found["onnxla_store_models_found_total"] == 1 and found["onnxla_store_models_missed_total"] == 2
        assert found["onnxla_store_programs_found_total"] == 1 and found["onnxla_store_programs_missed_total"] == 2
        assert found["onnxla_job_compile_seconds_count"] == 2
