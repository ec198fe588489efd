"""The pipeline: order, records, dumps, leaving out, stopping, and blame for a pass that breaks the module."""

from pathlib import Path

import pytest

from onnxla.config import CompileOptions
from onnxla.errors import InputError, InternalError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.hlo.parser import parse_module
from onnxla.hlo.types import F32, TensorType
from onnxla.passes.pass_base import Pass
from onnxla.passes.pipeline import Pipeline
from onnxla.passes.pipelines import check_order, optimize, pipeline_for


def program() -> Module:
    b = Builder()
    x = b.parameter(TensorType(F32, (2, 3)))
    return Module("m", b.build(b.negate(b.negate(b.exponential(x)))))


def test_records_say_what_each_pass_did() -> None:
    seen: list[str] = []
    report = optimize(program(), progress=seen.append)
    assert seen == [r.name for r in report.records]
    first = next(r for r in report.records if r.name == "simplify")
    assert (first.changed, first.stats) == (True, {"negate_twice": 1})
    assert report.records[-1].name == "fuse-instructions" and report.total("kernels") == 1
    assert "negate_twice 1" in str(report)


def test_disabled_passes_are_left_out() -> None:
    module = program()
    report = optimize(module, options=CompileOptions(disabled_passes=("simplify",)))
    assert "simplify" not in [r.name for r in report.records]
    assert module.entry.root.op.opcode == "fusion"


def test_the_pipeline_stops_after_a_pass() -> None:
    report = optimize(program(), options=CompileOptions(stop_after="simplify"))
    assert report.records[-1].name == "simplify" and report.stopped_after == "simplify"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="no pass is called 'fuse'; the passes are .*fuse-instructions"):
        pipeline_for("cpu", CompileOptions(disabled_passes=("fuse",)))
    with pytest.raises(InputError, match="no passes for the target 'tpu'"):
        pipeline_for("tpu", CompileOptions())


def test_dumps_show_the_module_before_and_after(tmp_path: Path) -> None:
    optimize(program(), options=CompileOptions(dump_to=str(tmp_path)))
    before, after = sorted(tmp_path.iterdir())
    assert before.name == "00-input.hlo" and after.name.endswith("-simplify.hlo")
    assert before.read_text().count("negate(") == 2
    assert parse_module(after.read_text()).entry.root.op.opcode == "exponential"


class BreakTheType(Pass):
    name = "break-the-type"

    def run(self, module: Module) -> bool:
        module.entry.root.type = TensorType(F32, (5,))
        return True


def test_a_pass_that_breaks_the_module_is_named(tmp_path: Path) -> None:
    with pytest.raises(InternalError) as caught:
        Pipeline([BreakTheType()], CompileOptions(dump_to=str(tmp_path))).run(program())
    text = str(caught.value)
    assert text.startswith("the pass break-the-type of the pipeline broke the module: in computation main: ")
    assert text.endswith(f"replay it: onnxla opt {tmp_path / '00-input.hlo'} --passes break-the-type")


def test_passes_in_a_wrong_order_are_refused() -> None:
    for target in ("cpu", "gpu"):
        passes = pipeline_for(target, CompileOptions()).passes
        assert passes[-1].name == "fuse-instructions"
        with pytest.raises(InternalError, match="nothing may run after fuse-instructions"):
            check_order([*passes, passes[1]])
        with pytest.raises(InternalError, match="inline-calls must run before simplify: rules do not look into calls"):
            check_order(passes[1:])
