"""Compile on a server (`onnxla serve`), from another machine: the model goes there, the artifact comes back.

    from onnxla.client import CompileServer
    server = CompileServer("https://compile.example:8000", token="...")
    server.compile("model.onnx", "model.onnxla", dims={"batch": 8})

The code is made for the CPU of this machine unless `target_cpu` names another one. What a compile here would raise is
raised here; ServiceError where the server cannot be reached, or fails.
"""

from onnxla.client.server import CompileServer

__all__ = ["CompileServer"]
