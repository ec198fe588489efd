"""Print a plan as a launch list: JSON that `onnxla/runtime/device.py` reads."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.lowering import LibraryCall
from onnxla.codegen.plan import Copy, Launch, Plan, Slot, Space, Step, WhileLoop
from onnxla.codegen.rounds import rounds_of


def emit_launch_list(
    plan: Plan, symbol_of: Callable[[Kernel], str], architectures: Sequence[str], modules: Sequence[Sequence[str]]
) -> bytes:
    """The steps of a plan, the kernels' names by module, and the architectures whose machine code comes with it."""
    content = {
        "architectures": list(architectures),
        "modules": [list(names) for names in modules],
        "steps": _steps(plan.steps, symbol_of),
    }
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def _steps(steps: Sequence[Step], symbol_of: Callable[[Kernel], str]) -> list[dict[str, Any]]:
    return [_step(step, symbol_of) for step in steps]


def _step(step: Step, symbol_of: Callable[[Kernel], str]) -> dict[str, Any]:
    if isinstance(step, Launch):
        row: dict[str, Any] = {
            "launch": symbol_of(step.kernel),
            "blocks": step.kernel.tasks,
            "threads": step.kernel.threads,
            "arguments": [_place(slot) for slot in step.arguments],
        }
        if step.library is not None:
            row["library"] = _library(step.library, [_place(slot) for slot in step.library_arguments])
        return row
    if isinstance(step, Copy):
        return {"copy": step.target.buffer.bytes, "source": _place(step.source), "target": _place(step.target)}
    if isinstance(step, WhileLoop):
        condition, body = (_steps(s, symbol_of) for s in (step.condition, step.body))
        row = {"loop": _place(step.predicate), "condition": condition, "body": body}
        rounds = rounds_of(step.instruction)
        return row if rounds is None else row | {"rounds": rounds}
    cases = [_steps(case, symbol_of) for case in step.cases]
    return {"branch": _place(step.index), "pred": step.index_is_pred, "cases": cases}


def _library(call: LibraryCall, places: Sequence[list[str | int]]) -> dict[str, Any]:
    """`places` are those of its arguments, in their order."""
    matrices = [
        {
            "place": place,
            "element": matrix.element,
            "rows": matrix.rows,
            "columns": matrix.columns,
            "line": matrix.line,
            "batch": matrix.batch,
            "offset": matrix.offset,
            "transposed": matrix.is_transposed,
        }
        for matrix, place in zip((call.left, call.right, call.result), places[:3], strict=True)
    ]
    return {
        "batches": call.batches,
        "matrices": matrices,
        "tf32": call.tf32,
        "workspace": places[3],
        "workspace_bytes": call.workspace_bytes,
        "bias": places[4] if call.bias is not None else None,
    }


def _place(slot: Slot) -> list[str | int]:
    space: Space = slot.buffer.space
    return [space.value, slot.buffer.place]
