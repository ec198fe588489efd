"""`onnxla serve` as a process: a folder of models in, answers out, and an end that is asked for."""

import json
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http

from onnxla.errors import InputError
from onnxla.serving.run_server import Wanted
from tests.cli.command import DIGITS, DIGITS_INPUT, onnxla
from tests.serving.running import eventually
from tests.serving.test_grpc import infer_input
from tests.serving.test_http import tensor


def test_from_a_folder_to_answers(tmp_path: Path) -> None:
    place = tmp_path / "models" / "digits" / "1"
    place.mkdir(parents=True)
    shutil.copy(DIGITS, place / "model.onnx")
    images = np.load(DIGITS_INPUT)["image"]
    command = [sys.executable, "-m", "onnxla", "serve", "-r", str(tmp_path / "models"), "--log", "json"]
    command += ["--http-port", "0", "--grpc-port", "0", "--set", "engine.compile_in=thread", "--set", "idle_seconds=9"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = json.loads(process.stderr.readline())
            http = triton_http.InferenceServerClient(told["http"].partition("://")[2], network_timeout=120)
            grpc = triton_grpc.InferenceServerClient(told["grpc"].partition("://")[2])
            assert eventually(http.is_server_ready)
            assert np.array_equal(http.infer("digits", [tensor("image", images)]).as_numpy("digit"), np.arange(10))
            assert np.array_equal(grpc.infer("digits", [infer_input("image", images)]).as_numpy("digit"), np.arange(10))
            with urllib.request.urlopen(f"{told['http']}/v2/compile", timeout=20) as answer:
                assert json.loads(answer.read()) == {"jobs": []}
            grpc.close()
            http.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_settings_by_name() -> None:
    wanted = Wanted()
    for text in ("rate=2.5", "log_requests=true", "engine.workers=3", "engine.load_at_start=a,b", "jobs.folder=/x"):
        wanted.set_text(text)
    assert wanted.parts[""] == {"rate": 2.5, "log_requests": True}
    assert wanted.parts["engine"] == {"workers": 3, "load_at_start": ("a", "b")}
    assert wanted.parts["jobs"] == {"folder": Path("/x")}
    for text, problem in (
        ("rate", "NAME=VALUE is needed"),
        ("none=1", "with a name of host, http_port"),
        ("else.rate=1", "NAME=VALUE is needed"),
        ("rate=fast", "could not convert"),
        ("log_requests=1", "choose true or false"),
        ("jobs.limits=1", "cannot be set from the command line"),
    ):
        with pytest.raises(InputError, match=problem):
            wanted.set_text(text)


def test_what_cannot_be_served_is_told(tmp_path: Path) -> None:
    for arguments, problem in (
        (["--set", "max_requests=0"], "max_requests is 0: at least 1 is needed"),
        (["--token-file", tmp_path / "none"], "tokens cannot be read"),
        (["--control", "often"], "choose 'none', 'poll' or 'explicit'"),
    ):
        ended = onnxla("serve", "-r", tmp_path, *arguments)
        assert ended.code == 2 and problem in ended.err
