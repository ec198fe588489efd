"""Runs a version of a model in a process of its own (`worker.py`), which a crash of native code ends alone."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from onnxla.errors import ResourceLimitError
from onnxla.serving.environment import child_environment
from onnxla.serving.instances import WorkerDied
from onnxla.serving.requests import Array
from onnxla.serving.shared_tensors import SharedTensors
from onnxla.serving.variant import Variant
from onnxla.serving.worker import LONGEST_MESSAGE, error_of

_LOG = logging.getLogger("onnxla.serving")
_START_SECONDS = 120.0
"""How long a worker may take to load an artifact."""


class WorkerRunner:
    """All of it is called on one thread, which must live as long as the worker: the system ends it with the thread."""

    inline = False

    def __init__(self, name: str, num_threads: int | None, device: str | None, most: int, run_seconds: float) -> None:
        """`most` sets of shapes are kept in it; a run that takes longer than `run_seconds` (0: none does) ends it."""
        self._name, self._num_threads, self._device = name, num_threads, device
        self._most, self._run_seconds = most, run_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._loaded: OrderedDict[int, None] = OrderedDict()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def prepare(self, variants: Sequence[Variant]) -> None:
        """Have a worker, with the code for `variants`. Raises OnnxlaErrors, and WorkerDied."""
        if self._process is None:
            self._start()
        for variant in variants:
            self._load(variant)

    def run(self, variant: Variant, arrays: Sequence[Array]) -> list[Any]:
        if self._process is None:
            self._start()
        self._load(variant)
        if variant.positions is not None:
            arrays = [arrays[k] for k in variant.positions]
        try:
            rows = self._inputs.write(arrays)
        except OSError as error:
            raise ResourceLimitError(f"no memory for the inputs: {error}") from error
        answer = self._ask({"run": variant.number, "inputs": rows}, self._run_seconds or None)
        return self._outputs.read(answer["outputs"], copy=True)

    def close(self) -> None:
        self._end()

    def _load(self, variant: Variant) -> None:
        if variant.number in self._loaded:
            self._loaded.move_to_end(variant.number)
            return
        while len(self._loaded) >= self._most:
            number, _ = self._loaded.popitem(last=False)
            self._ask({"drop": number}, _START_SECONDS)
        row = {"path": str(variant.artifact), "num_threads": self._num_threads, "device": self._device}
        self._ask({"load": variant.number, **row}, _START_SECONDS)
        self._loaded[variant.number] = None

    def _ask(self, message: dict[str, Any], seconds: float | None) -> dict[str, Any]:
        """The worker's answer. Raises what it raised, and WorkerDied where there is none."""
        try:
            self._socket.settimeout(seconds)
            self._socket.send(json.dumps(message).encode())
            data = self._socket.recv(LONGEST_MESSAGE)
        except TimeoutError:
            self._end()
            raise WorkerDied(f"it gave no answer for {seconds:g} seconds") from None
        except OSError:
            data = b""
        if not data:
            raise WorkerDied(self._end())
        answer: dict[str, Any] = json.loads(data)
        if "error" in answer:
            raise error_of(answer)
        return answer

    def _start(self) -> None:
        self._loaded.clear()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._inputs, self._outputs = SharedTensors.create("inputs"), SharedTensors.create("outputs")
            descriptors = (theirs.fileno(), self._inputs.descriptor, self._outputs.descriptor)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "onnxla.serving.worker", str(os.getpid()), *map(str, descriptors)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                env=child_environment(),
                start_new_session=True,
                pass_fds=descriptors,
            )
        except OSError as error:
            ours.close()
            raise ResourceLimitError(f"a worker cannot be started: {error.strerror}") from error
        finally:
            theirs.close()
        self._socket = ours

    def _end(self) -> str:
        """Kill the worker, if it lives; what it died of."""
        process, self._process = self._process, None
        if process is None:
            return "it had ended"
        with suppress(ProcessLookupError):
            process.kill()
        code = process.wait()
        self._socket.close()
        self._inputs.close()
        self._outputs.close()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"it ended with {how}"
