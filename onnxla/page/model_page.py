"""The page of a program, from the program itself or, in a dump, from what the compiler still has at hand."""

from collections.abc import Mapping
from typing import Any

from onnxla.inside.inside import Inside, inside_of
from onnxla.page.document import document_of
from onnxla.page.html import page_html
from onnxla.roofline.limits import Limits
from onnxla.runtime.profiler import Profile
from onnxla.runtime.program import Program


def model_page(
    program: Program,
    about: Mapping[str, Any],
    title: str,
    profile: Profile | None = None,
    limits: Limits | None = None,
    inside: Inside | None = None,
) -> str:
    """The HTML text. Without `inside`, that is made again from the program's HLO. Raises ArtifactError."""
    inside = inside or inside_of(program, about)
    return page_html(document_of(inside, program, title, _facts(program, about), profile, limits))


def _facts(program: Program, about: Mapping[str, Any]) -> list[tuple[str, str]]:
    outer = sum(step.depth == 0 for step in program.steps)
    return [
        ("machine", f"{program.triple.partition('-')[0]} {program.cpu}"),
        ("work", f"{program.instruction_count} instructions, {program.kernel_count} kernels, {outer} steps"),
        ("arena", f"{_size(program.arena_bytes)} of {_size(program.intermediate_bytes)}"),
        ("weights", _size(program.weights.nbytes)),
        *((("onnxla", str(about["onnxla"])),) if "onnxla" in about else ()),
    ]


def _size(count: int) -> str:
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"
