"""Which runtimes can be asked for, and what is said of those that are not there."""

from dataclasses import replace

import pytest

from onnxla.errors import InputError
from onnxla.peers.runtimes import JUDGE, RUNTIMES, runtimes


def test_onnxruntime_is_always_there_and_comes_first() -> None:
    assert [r.name for r in runtimes(())] == [JUDGE]
    assert [r.name for r in runtimes((JUDGE, JUDGE))] == [JUDGE]


def test_an_unknown_runtime_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InputError) as refused:
        runtimes(("tensorrt",))
    words = "there is no runtime tensorrt; there are onnxruntime (installed), openvino ("
    assert str(refused.value).startswith(words)


def test_a_missing_runtime_comes_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = replace(RUNTIMES["openvino"], package="no_such_package")
    monkeypatch.setitem(RUNTIMES, "openvino", missing)
    assert str(missing) == "openvino (pip install no_such_package)"
    with pytest.raises(InputError) as refused:
        runtimes(("openvino",))
    assert str(refused.value) == "openvino is not installed\n  hint   pip install no_such_package"
