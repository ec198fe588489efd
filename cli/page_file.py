"""Write the page of a compiled model: `onnxla inspect --html`, `onnxla profile --html`."""

from pathlib import Path
from typing import TYPE_CHECKING

from onnxla import CompiledModel
from onnxla.cli.outputs import write_output

if TYPE_CHECKING:
    from onnxla.roofline.limits import Limits
    from onnxla.runtime.profiler import Profile


def write_page(
    path: Path,
    compiled: CompiledModel,
    title: str,
    profile: "Profile | None" = None,
    limits: "Limits | None" = None,
) -> int:
    """Write the page of the program used last; returns its size in bytes. Raises InputError, ArtifactError."""
    from onnxla.page.model_page import model_page

    page = model_page(compiled.programs[0], compiled.about, title, profile, limits).encode()
    write_output(path, page)
    return len(page)
