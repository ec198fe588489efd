"""Operations that would read files, run code or reach a network are refused by name."""

import socket
from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.errors import UnsupportedOpError
from onnxla.frontends.tensorflow.importer import import_tensorflow
from onnxla.frontends.tensorflow.messages import GraphDef
from tests.hostile.models import with_weights

FORBIDDEN = (
    "ReadFile WriteFile MatchingFiles PyFunc PyFuncStateless EagerPyFunc Save SaveV2 Restore RestoreV2 "
    "TextLineReaderV2 WholeFileReaderV2 TFRecordReaderV2 RecordInput DebugIdentity RpcOp TryRpc Send Recv ReaderReadV2 "
    "InitializeTableFromTextFileV2 LoadAndRemapMatrix XlaLaunch RemoteCall OutfeedEnqueue DecodeRaw"
).split()


@pytest.mark.parametrize("operation", FORBIDDEN)
def test_operations_that_reach_outside_are_refused(operation: str, tmp_path: Path) -> None:
    graph = GraphDef()
    name = graph.node.add(name="file", op="Const")
    name.attr["dtype"].type = 7
    name.attr["value"].tensor.dtype = 7
    name.attr["value"].tensor.string_val.append(str(tmp_path / "touched").encode())
    graph.node.add(name="y", op=operation, input=["file"])
    with pytest.raises(UnsupportedOpError, match=operation):
        import_tensorflow(graph, outputs=["y"])
    assert not list(tmp_path.iterdir())


def test_nothing_reaches_for_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*arguments: object, **named: object) -> None:
        raise AssertionError("a socket was wanted")

    for name in ("socket", "create_connection", "getaddrinfo", "socketpair"):
        monkeypatch.setattr(socket, name, forbidden)
    (tmp_path / "model.onnx").write_bytes(with_weights().SerializeToString())
    onnxla.compile(tmp_path / "model.onnx", options={"cache_dir": tmp_path / "cache"}).save(tmp_path / "m.onnxla")
    (y,) = onnxla.load_compiled(tmp_path / "m.onnxla").run(None, {"x": np.ones(1, np.float32)})
    assert y.size == 4096
