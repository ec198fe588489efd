"""Which model a command means: an artifact to load, or a model to compile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnxla
from onnxla.cli.arguments import parse_constants, parse_dims, parse_options, parse_shapes
from onnxla.cli.feeds import require_sizes
from onnxla.cli.output import progress_bar
from onnxla.config import CompileOptions
from onnxla.errors import InputError

if TYPE_CHECKING:
    from onnxla.frontends.onnx.model_file import OnnxModel

_ZIP = b"PK\x03\x04"


def is_artifact(path: Path) -> bool:
    """Whether the file begins as compiled models do."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_ZIP)) == _ZIP
    except OSError:
        return False


@dataclass(frozen=True)
class Request:
    """A model and how to compile it, as the command line says it."""

    path: Path
    shapes: Mapping[str, Sequence[int]]
    dims: Mapping[str, int | list[int]]
    constant_texts: Sequence[str] | None
    options: CompileOptions
    threads: int | None
    target: str = "cpu"

    @cached_property
    def onnx(self) -> "OnnxModel":
        """The model, read once. Raises ModelFormatError."""
        from onnxla.frontends.onnx.model_file import read_model

        return read_model(self.path)

    @cached_property
    def constants(self) -> dict[str, Any]:
        if not self.constant_texts:
            return {}
        from onnxla.frontends.onnx.signature import signature_of

        declared = signature_of(self.onnx)
        specs = (*declared.inputs, *declared.defaults)
        return parse_constants(self.constant_texts, {s.name: s.element.dtype for s in specs if s.element is not None})

    @property
    def single_dims(self) -> dict[str, int]:
        """The dimensions, each with one size. Raises InputError for lists, which only `compile` takes."""
        lists = [name for name, sizes in self.dims.items() if not isinstance(sizes, int)]
        if lists:
            raise InputError(f"--dim {lists[0]}: several sizes are for compile")
        return {name: sizes for name, sizes in self.dims.items() if isinstance(sizes, int)}

    def compile(self, model: Any = None, folder: Path | None = None) -> onnxla.CompiledModel:
        """Compile the model, or another one in its place with external data in `folder`, with a progress bar."""
        with progress_bar(f"compiling {self.path.name}") as progress:
            return onnxla.compile(
                model if model is not None else self._source(),
                target=self.target,
                folder=folder,
                shapes=self.shapes or None,
                dims=self.dims or None,
                constants=self.constants or None,
                options=self.options,
                num_threads=self.threads,
                progress=progress,
            )

    def load(self) -> onnxla.CompiledModel:
        """The compiled model: from its artifact, or made now."""
        if not is_artifact(self.path):
            return self.compile()
        if self.shapes or self.dims or self.constant_texts:
            raise InputError(f"{self.path} is compiled already: --shape, --dim and --constant are for models")
        return onnxla.load_compiled(self.path, num_threads=self.threads)

    def _source(self) -> Any:
        return self.path if self.path.suffix == ".hlo" else self.onnx


def request(
    path: Path,
    shapes: list[str] | None = None,
    dims: list[str] | None = None,
    constants: list[str] | None = None,
    options: list[str] | None = None,
    dump_to: str | None = None,
    threads: int | None = None,
    target: str = "cpu",
) -> Request:
    """A request from the texts of the command line. Raises InputError for texts that say nothing."""
    settings = parse_options(options, dump_to)
    return Request(path, parse_shapes(shapes), parse_dims(dims), constants, settings, threads, target)


def require_programs(compiled: onnxla.CompiledModel, wanted: Request) -> None:
    """Raise InputError where sizes or values are still open, so that nothing could be compiled."""
    if compiled.programs:
        return
    require_sizes(compiled.get_inputs(), wanted.single_dims)
    from onnxla.frontends.onnx.importer import import_model

    import_model(wanted.onnx, shapes=wanted.shapes, dims=wanted.single_dims, constants=wanted.constants)
