"""A process that holds one version of a model: `python -m onnxla.serving.worker PARENT SOCKET INPUTS OUTPUTS`.

It answers messages (JSON) on a socket, one after the other; tensors are in shared memory. It loads no compiler. When it
ends, in whatever way, its parent starts another. Artifacts are mapped, so workers share the memory of weights.

    {"load": 1, "path": "m.onnxla"}          {}
    {"run": 1, "inputs": [rows]}             {"outputs": [rows]}
    {"drop": 1}                              {}
                                             {"error": "InputError", "text": "..."}
"""

import json
import signal
import socket
import sys
from typing import Any

from onnxla.codegen.workers import die_with_parent
from onnxla.errors import InputError, OnnxlaError, ResourceLimitError
from onnxla.runtime.loading import load_compiled
from onnxla.runtime.model import CompiledModel
from onnxla.serving.shared_tensors import SharedTensors

LONGEST_MESSAGE = 1 << 17
"""Bytes; a message is one packet of the socket."""
_MOST_OF_ERRORS = 4000
_ERRORS: tuple[type[Exception], ...] = (InputError, ResourceLimitError, MemoryError, UnicodeDecodeError)


class _Worker:
    def __init__(self, inputs: SharedTensors, outputs: SharedTensors) -> None:
        self._inputs, self._outputs = inputs, outputs
        self._models: dict[int, CompiledModel] = {}

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        match message:
            case {"run": int(number), "inputs": rows}:
                arrays = self._inputs.read(rows, copy=False)
                return {"outputs": self._outputs.write(self._models[number].run_in_order(arrays))}
            case {"load": int(number), "path": str(path), "num_threads": threads, "device": device}:
                self._models[number] = load_compiled(path, num_threads=threads, device=device)
                return {}
            case {"drop": int(number)}:
                self._models.pop(number, None)
                return {}
        raise InputError("no message that is known")


def error_row(error: Exception) -> dict[str, str]:
    kind = next((k.__name__ for k in _ERRORS if isinstance(error, k)), "OnnxlaError")
    text = str(error) if isinstance(error, (OnnxlaError, *_ERRORS)) else f"{type(error).__name__}: {error}"
    return {"error": kind, "text": text[:_MOST_OF_ERRORS]}


def error_of(row: dict[str, str]) -> Exception:
    """What `error_row` made a row of."""
    kind = {"InputError": InputError, "UnicodeDecodeError": InputError, "ResourceLimitError": ResourceLimitError}
    if row["error"] == "MemoryError":
        return ResourceLimitError(row["text"])
    return kind.get(row["error"], OnnxlaError)(row["text"])


def main() -> int:
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    talk = socket.socket(fileno=int(sys.argv[2]))
    worker = _Worker(SharedTensors(int(sys.argv[3])), SharedTensors(int(sys.argv[4])))
    while True:
        data = talk.recv(LONGEST_MESSAGE)
        if not data:
            return 0
        try:
            answer = worker.answer(json.loads(data))
        except Exception as error:
            answer = error_row(error)
        talk.send(json.dumps(answer).encode())


if __name__ == "__main__":
    sys.exit(main())
