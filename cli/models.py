"""Which model a command means: an artifact to load, or a model to compile."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnxla
from onnxla.cli.argument_groups import Compilation, Cut
from onnxla.cli.arguments import parse_constants, parse_dims, parse_options, parse_shapes
from onnxla.cli.feeds import Feeds, feeds_for, read_inputs, require_sizes
from onnxla.cli.names import names_in_compiled, names_in_message, names_in_tensorflow
from onnxla.cli.output import keep_in_line, progress_bar
from onnxla.config import CompileOptions, Limits
from onnxla.errors import DeviceError, InputError
from onnxla.files import open_file

if TYPE_CHECKING:
    from onnxla.compiler.sources import Source
    from onnxla.frontends.hlo.model_file import HloModel
    from onnxla.frontends.onnx.model_file import OnnxModel
    from onnxla.frontends.signature import TensorSpec
    from onnxla.frontends.tensorflow.model_file import TensorFlowModel
    from onnxla.runtime.mixed_report import FallbackReport

_ZIP = b"PK\x03\x04"
ARTIFACT_SUFFIX = ".onnxla"


def is_artifact(path: Path) -> bool:
    """Whether the file begins as compiled models do, or is called like one."""
    try:
        with open_file(path) as file:
            return file.read(len(_ZIP)) == _ZIP or path.suffix == ARTIFACT_SUFFIX
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
    cut: Cut = Cut()
    fallback: str | None = None
    device: str | None = None

    @cached_property
    def is_tensorflow(self) -> bool:
        """Whether it is a SavedModel or a GraphDef."""
        from onnxla.frontends.tensorflow.model_file import is_tensorflow

        return is_tensorflow(self.path)

    @cached_property
    def is_hlo(self) -> bool:
        """Whether it is HLO: XLA's or StableHLO's text, bytecode, or an exported function of JAX."""
        from onnxla.frontends.hlo.model_file import is_hlo

        return not self.is_tensorflow and is_hlo(self.path)

    @cached_property
    def hlo(self) -> "HloModel":
        """The program, read once. Raises ModelFormatError, HloError."""
        from onnxla.frontends.hlo.model_file import read_hlo

        return read_hlo(self.path)

    @cached_property
    def onnx(self) -> "OnnxModel":
        """The model, read once. Raises ModelFormatError, and InputError for a model of another kind."""
        from onnxla.frontends.onnx.model_file import read_model

        if self.is_tensorflow:
            raise InputError(f"{self.path} is a TensorFlow model; this is for ONNX models")
        if self.is_hlo:
            raise InputError(f"{self.path} is HLO; this is for ONNX models")
        model = read_model(self.path)
        keep_in_line(names_in_message(model.proto))
        return model

    @cached_property
    def tensorflow(self) -> "TensorFlowModel":
        """The model, read once. Raises ModelFormatError."""
        from onnxla.frontends.tensorflow.model_file import read_tensorflow

        model = read_tensorflow(self.path)
        keep_in_line(names_in_tensorflow(model))
        return model

    @cached_property
    def constants(self) -> dict[str, Any]:
        if not self.constant_texts:
            return {}
        return parse_constants(self.constant_texts, {s.name: s.element.dtype for s in self._specs() if s.element})

    def _specs(self) -> "Sequence[TensorSpec]":
        """The inputs as the model declares them."""
        if self.is_tensorflow:
            from onnxla.frontends.tensorflow.signature import interface_of

            return [p.spec for p in interface_of(self.tensorflow, **self.cut.arguments()).inputs]
        if self.is_hlo:
            from onnxla.frontends.hlo.signature import signature_of as signature_of_program
            from onnxla.frontends.hlo.syntax import Program

            return signature_of_program(self.hlo).inputs if isinstance(self.hlo, Program) else ()
        from onnxla.frontends.onnx.signature import signature_of

        declared = signature_of(self.onnx)
        return (*declared.inputs, *declared.defaults)

    def require_names(self) -> None:
        """Raise InputError for names in --shape, --dim and --constant that the model does not have, and for shapes that
        contradict it."""
        if not (self.shapes or self.dims or self.constant_texts):
            return
        specs = {spec.name: spec for spec in self._specs()}
        if not specs and self.is_hlo:
            return  # XLA's HLO, whose shapes are in it: the compiler says so
        symbols = list(dict.fromkeys(n for spec in specs.values() for n in spec.shape or () if isinstance(n, str)))
        inputs = f"it takes {', '.join(map(str, specs.values())) or 'nothing'}"
        for option, given in (("--shape", self.shapes), ("--constant", self.constants)):
            for name in given:
                if name not in specs:
                    raise InputError(f"{option} {name}: the model has no such input; {inputs}")
        for name in self.dims:
            if name not in symbols:
                known = f"there {'is' if len(symbols) == 1 else 'are'} {', '.join(symbols) or 'none'}"
                raise InputError(f"--dim {name}: the model's inputs have no such symbolic dimension; {known}")
        for name, shape in self.shapes.items():
            declared = specs[name].shape
            if declared is not None and (
                len(declared) != len(shape)
                or any(isinstance(n, int) and n != size for n, size in zip(declared, shape, strict=True))
            ):
                raise InputError(f"--shape {name}={'x'.join(map(str, shape))}: the model's input is {specs[name]}")

    def source(self) -> "Source":
        """The model as the compiler takes it. Raises InputError for names that it does not have."""
        self.require_names()
        limits = Limits.from_environment()
        if self.is_tensorflow:
            from onnxla.compiler.tensorflow_source import TensorFlowSource

            return TensorFlowSource(self.tensorflow, self.options, limits, self.constants, **self.cut.arguments())
        if self.is_hlo:
            from onnxla.compiler.hlo_source import source_of_hlo

            return source_of_hlo(self.hlo, self.options, limits, self.constants)
        from onnxla.compiler.onnx_source import OnnxSource

        return OnnxSource(self.onnx, self.options, limits, self.constants)

    @property
    def single_dims(self) -> dict[str, int]:
        """The dimensions, each with one size. Raises InputError for lists, of which this command knows no use."""
        lists = [name for name, sizes in self.dims.items() if not isinstance(sizes, int)]
        if lists:
            raise InputError(f"--dim {lists[0]}: several sizes are for compile and cache explain")
        return {name: sizes for name, sizes in self.dims.items() if isinstance(sizes, int)}

    def each_size(self) -> list[dict[str, int]]:
        """Every combination of the sizes of the dimensions, as `compile` takes them."""
        lists = [[sizes] if isinstance(sizes, int) else sizes for sizes in self.dims.values()]
        return [dict(zip(self.dims, sizes, strict=True)) for sizes in itertools.product(*lists)]

    def compile(self, model: Any = None, folder: Path | None = None) -> onnxla.CompiledModel:
        """Compile the model, or another one in its place with external data in `folder`, with a progress bar.

        Raises InputError for names that the model does not have.
        """
        self.require_names()
        with progress_bar(f"compiling {self.path.name}") as progress:
            return onnxla.compile(
                model if model is not None else self.read(),
                target=self.target,
                folder=folder,
                shapes=self.shapes or None,
                dims=self.dims or None,
                constants=self.constants or None,
                options=self.options,
                num_threads=self.threads,
                progress=progress,
                fallback=self.fallback,
                device=self.device,
                **self.cut.arguments(),
            )

    def forget_model(self) -> None:
        """Give the memory of the model back; it is read again where somebody asks for it."""
        self.__dict__.pop("onnx", None)
        self.__dict__.pop("tensorflow", None)

    def load(self) -> onnxla.CompiledModel:
        """The compiled model: from its artifact, or made now."""
        if not is_artifact(self.path):
            return self.compile()
        if self.shapes or self.constant_texts or self.options != CompileOptions.from_environment():
            raise InputError(f"{self.path} is compiled already: --shape, --constant and --option are for models")
        if self.fallback is not None:
            raise InputError(f"{self.path} is compiled already: --fallback is for models")
        device = self.device if self.device is not None else "cuda" if self.target == "gpu" else None
        try:
            compiled = load_artifact(self.path, self.threads, device)
        except DeviceError as error:
            if device is None:
                raise
            raise InputError(f"{self.path} is compiled already: {error}") from error
        still_open = {n for t in compiled.get_inputs() for n in t.shape or () if isinstance(n, str)}
        settled = [name for name in self.dims if name not in still_open]
        if settled:
            raise InputError(f"{self.path} is compiled already: --dim {settled[0]} is settled or not there")
        return compiled

    def read(self) -> Any:
        """The model, read once, whatever its format."""
        if self.is_tensorflow:
            return self.tensorflow
        return self.hlo if self.is_hlo else self.onnx


def request(
    path: Path,
    how: Compilation,
    *,
    threads: int | None = None,
    cut: Cut | None = None,
    fallback: str | None = None,
    arch: str | None = None,
    dump_to: str | None = None,
) -> Request:
    """A request from the texts of the command line. Raises InputError for texts that say nothing."""
    keep_in_line((str(path), path.name))
    rounding, sizes = how.rounding, how.sizes
    if arch is not None and "gpu" not in how.target:
        raise InputError(f"--arch {arch} goes with --target gpu")
    kept = None if rounding.keep_f32 is None else tuple(rounding.keep_f32)
    knobs = {"target_gpu": arch, "precision": rounding.precision, "keep_f32": kept}
    return Request(
        path,
        parse_shapes(sizes.shape),
        parse_dims(sizes.dim),
        sizes.constant,
        parse_options(how.option, dump_to, knobs),
        threads,
        how.target,
        cut if cut is not None else Cut(),
        fallback,
        how.device,
    )


@dataclass(frozen=True)
class Loaded:
    """A compiled model with the inputs of a run."""

    model: onnxla.CompiledModel
    feeds: Feeds

    def run(self) -> dict[str, Any]:
        """The outputs by name."""
        names = [t.name for t in self.model.get_outputs()]
        return dict(zip(names, self.model.run(None, self.feeds.arrays), strict=True))


def load_and_feed(wanted: Request, inputs: list[str] | None, seed: int, compiled: Path | None = None) -> Loaded:
    """The model of a request, or the artifact `compiled` in its place, and arrays for all of its inputs: those in the
    files `inputs`, which are read first, and random ones from `seed`."""
    arrays = read_inputs(inputs)
    model = wanted.load() if compiled is None else load_artifact(compiled, wanted.threads, wanted.device)
    return Loaded(model, feeds_for(model.get_inputs(), model.get_outputs(), arrays, seed, wanted.dims))


def load_artifact(path: Path, threads: int | None = None, device: str | None = None) -> onnxla.CompiledModel:
    """A compiled model from its file. Raises ArtifactError, DeviceError."""
    compiled = onnxla.load_compiled(path, num_threads=threads, device=device)
    keep_in_line((str(path), path.name, *names_in_compiled(compiled)))
    return compiled


def clusters_of(compiled: onnxla.CompiledModel) -> "FallbackReport | None":
    """What runs where, of a model with parts in onnxruntime; None for others, and while nothing is planned."""
    from onnxla.runtime.mixed_model import MixedModel

    return compiled.clusters if isinstance(compiled, MixedModel) else None


def require_programs(compiled: onnxla.CompiledModel, wanted: Request) -> None:
    """Raise InputError where sizes or values are still open, so that nothing could be compiled."""
    if compiled.programs:
        return
    if wanted.fallback is not None:
        if clusters_of(compiled) is not None:
            return
        require_sizes(compiled.get_inputs(), wanted.single_dims)
        raise InputError("the values of inputs decide shapes: give them with --constant INPUT=VALUE")
    require_sizes(compiled.get_inputs(), wanted.single_dims)
    wanted.source().load(wanted.shapes, wanted.single_dims, {})
