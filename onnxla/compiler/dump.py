"""The stages behind the passes as files, beside what the passes have written of theirs."""

from pathlib import Path

from onnxla.codegen.kernels.text import print_kernel
from onnxla.compiler.made import Made
from onnxla.files import write_file
from onnxla.hlo.module import Module
from onnxla.inside.inside import Inside
from onnxla.inside.kernel_code import resource_report
from onnxla.runtime.program import Program
from onnxla.version import __version__


def write_dump(folder: Path, program: Program, made: Made, module: Module, name: str) -> None:
    """Kernels, plan, memory, code, graph and page of `program`, which is `made` of the model `name`."""
    from onnxla.page.model_page import model_page

    code = made.code()
    inside = Inside(module, made.plan, made.symbols, code)
    files = {
        "kernels.txt": "\n".join(map(print_kernel, made.symbols)),
        "plan.txt": program.texts["plan"],
        "memory.txt": program.texts["memory"],
        "graph.dot": program.texts["optimized_hlo_dot"],
        "resources.txt": resource_report(code),
        "page.html": model_page(program, {"onnxla": __version__}, name, inside=inside),
        **made.dumps(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        write_file(folder / file, text)
