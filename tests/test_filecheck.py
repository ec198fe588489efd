"""The harness of the text tests: each kind of check holds and fails when it should."""

import pytest

from onnxla.errors import InputError
from tests.filecheck import CheckFailure, check_output, checks_in, run_command

OUTPUT = """ENTRY %main {
  %x = f32[2]{0} parameter(0)
  %n.7 = f32[2]{0} negate(%x)
  ROOT %y = f32[2]{0} add(%n.7,   %x)
}
"""


@pytest.mark.parametrize(
    "checks",
    [
        ["CHECK: %x = f32[2]{0} parameter(0)", "CHECK-NEXT: negate(%x)", "CHECK-NEXT: ROOT"],
        ["CHECK: parameter", "CHECK: add"],
        ["CHECK-NOT: multiply"],
        ["CHECK: parameter", "CHECK-NOT: parameter", "CHECK: negate"],
        ["CHECK: [[N:%n.\\d+]] = ", "CHECK: add([[N]], %x)"],
        ["CHECK: ROOT {{%[a-z]}} = f32[2]{0} add(%n.7, %x)"],
        ["CHECK-COUNT-3: f32[2]{0}", "CHECK-NOT: f32"],
    ],
)
def test_checks_that_hold(checks: list[str]) -> None:
    check_output(OUTPUT, checks_in("\n".join(f"// {c}" for c in checks)))


@pytest.mark.parametrize(
    ("checks", "cause"),
    [
        (["CHECK: multiply"], "line 1: CHECK: multiply\nnot found, searched from line 1"),
        (["CHECK: add", "CHECK: negate"], "line 2: CHECK: negate\nnot found, searched from line 4"),
        (["CHECK: parameter", "CHECK-NEXT: add"], "line 2: CHECK-NEXT: add\nnot found"),
        (["CHECK: parameter", "CHECK-NOT: negate", "CHECK: add"], "line 2: CHECK-NOT: negate\nfound, but must not"),
        (["CHECK-NOT: add"], "line 1: CHECK-NOT: add\nfound"),
        (["CHECK: [[N:%x]]", "CHECK: ROOT [[N]]"], "line 2: CHECK: ROOT [[N]]\nnot found"),
        (["CHECK-COUNT-4: f32[2]{0}"], "not found"),
        (["CHECK: f32.2"], "not found"),
    ],
)
def test_checks_that_fail_say_where(checks: list[str], cause: str) -> None:
    with pytest.raises(CheckFailure) as caught:
        check_output(OUTPUT, checks_in("\n".join(f"// {c}" for c in checks)))
    assert cause in str(caught.value)
    assert "   2   %x = f32[2]{0} parameter(0)" in str(caught.value)


def test_a_command_runs_passes_in_order() -> None:
    text = "ENTRY e { a = s32[] constant(2) ROOT b = s32[] add(a, a) }"
    assert "ROOT %b = s32[] constant(4)" in run_command("onnxla opt %s --passes fold-constants", text)
    with pytest.raises(InputError, match="no pass is called 'fuse-everything'"):
        run_command("onnxla opt %s --passes fuse-everything", text)


def test_a_command_may_expect_an_error() -> None:
    assert run_command("not onnxla opt %s", "ENTRY e {").startswith("HloError: expected an instruction")
    with pytest.raises(CheckFailure, match="expected an error"):
        run_command("not onnxla opt %s", "ENTRY e { ROOT a = s32[] parameter(0) }")
