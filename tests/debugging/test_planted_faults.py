"""A fault planted into a pass, a kernel or an import rule is named with its node, on a model of at most five nodes."""

import pytest

from tests.debugging.network import feeds, network, search
from tests.debugging.planted import KERNELS, PASSES, RULES

PLANTED = {**PASSES, **KERNELS, **RULES}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = PLANTED[name]
    planted.plant(monkeypatch)
    fault = search(network(), feeds()).fault
    assert fault is not None
    assert (fault.culprit.blame.value, fault.culprit.name[: len(planted.name)]) == (planted.part, planted.name)
    assert fault.node.startswith(f"{planted.node} ")
    assert len(fault.nodes) <= 5
    assert planted.detail in " ".join(fault.culprit.details)
    assert fault.in_time


def test_there_are_five_faults_of_each_kind() -> None:
    assert (len(PASSES), len(KERNELS)) == (5, 5)


def test_without_a_fault_nothing_is_found() -> None:
    findings = search(network(), feeds())
    assert findings.fault is None and not findings.set_aside
    assert len(findings.values) == len(network().graph.node)
    assert all(c.agrees for c in (*findings.outputs, *findings.values))
