"""LLVM IR to objects: here or in workers, for this machine or another, the same bytes every time."""

import pytest

from onnxla.codegen.cpu.compile_llvm import assembly, compile_module
from onnxla.codegen.cpu.compile_parallel import compile_modules
from onnxla.codegen.cpu.target import host_target, named_target
from onnxla.errors import InternalError


def function(k: int) -> str:
    return f"define i64 @f{k}(i64 %x) {{\n  %y = mul i64 %x, {k}\n  ret i64 %y\n}}\n"


def test_workers_give_the_same_objects_in_the_same_order() -> None:
    modules = [(function(k), k % 4) for k in range(6)]
    alone = compile_modules(modules, host_target(), processes=1)
    assert alone == [compile_module(text, host_target(), level) for text, level in modules]
    assert compile_modules(modules, host_target(), processes=3) == alone


def test_bad_text_is_an_internal_error_here_and_in_a_worker() -> None:
    with pytest.raises(InternalError, match="the generated LLVM IR is not valid"):
        compile_module("define void @f() { ret i32 }", host_target())
    bad = [("".join(map(function, range(3))), 2), ("define void @f() { ret i32 }", 2)]
    with pytest.raises(InternalError, match="(?s)a compile worker failed.*not valid"):
        compile_modules(bad, host_target(), processes=2)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_compiles(level: int) -> None:
    assert compile_module(function(3), host_target(), level)[:4] == b"\x7fELF"


def test_code_for_other_cpus() -> None:
    vector = "define <8 x float> @f(<8 x float> %x) {\n  %y = fadd <8 x float> %x, %x\n  ret <8 x float> %y\n}\n"
    assert "ymm" in assembly(vector, named_target("x86-64-v3"))
    assert "ymm" not in assembly(vector, named_target("x86-64"))
    assert "fadd\tv0.4s" in assembly(vector, named_target("generic-aarch64"))


_CHOICE = """
define void @f(ptr %x, ptr %y, ptr %z) {
  %a = load float, ptr %x, align 4
  %b = load float, ptr %y, align 4
  %less = fcmp ole float %a, 1.0
  %c = select i1 %less, float %b, float %a
  store float %c, ptr %z, align 4
  ret void
}
"""


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_choice_between_two_floats_reads_no_more_than_two_floats(level: int) -> None:
    """LLVM's generator of level 0 makes `vblendvps %xmm1, (%rcx), ...` of it: 16 bytes."""
    blend = [line for line in assembly(_CHOICE, named_target("x86-64-v3"), level).splitlines() if "blendv" in line]
    assert blend and not any("(" in line for line in blend)
