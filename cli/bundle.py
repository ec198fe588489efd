"""`onnxla debug --bundle`: all that a report of a fault needs, in one file.

Names in the texts are the model's, made harmless; the files are named by onnxla alone.
"""

import json
import tempfile
import traceback
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import onnxla
from onnxla.cli.doctor_command import facts
from onnxla.cli.feeds import write_outputs
from onnxla.cli.output import plain, safe
from onnxla.cli.outputs import writing_to
from onnxla.debugging.find_fault import Model
from onnxla.debugging.model_part import whole_proto
from onnxla.debugging.random_weights import randomize_weights
from onnxla.debugging.trial import Settings
from onnxla.files import writing
from onnxla.version import __version__

_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the bundle: it says nothing."""


def write_bundle(
    path: Path, run: Model, settings: Settings, shapes: Mapping[str, tuple[int, ...]], command: str, seed: int | None
) -> list[str]:
    """Write the report, with random weights where there is a seed; the names of its files.

    A model that does not compile is reported too. Raises InputError where the file cannot be written.
    """
    proto = whole_proto(run.model)
    replaced = None if seed is None else randomize_weights(proto, seed)
    text = proto.SerializeToString()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.onnx").write_bytes(text)
        write_outputs(folder / "inputs.npz", {**run.constants, **run.feeds})
        failure = _dump(text, run, settings, shapes, folder / "dump")
        if failure:
            (folder / "error.txt").write_text(safe(failure))
        (folder / "machine.json").write_text(json.dumps(plain(facts()), indent=2))
        (folder / "command.txt").write_text(safe(command) + "\n")
        (folder / "README.txt").write_text(_readme(command, replaced, seed, bool(failure)))
        return _pack(path, folder)


def _dump(text: bytes, run: Model, settings: Settings, shapes: Mapping[str, tuple[int, ...]], folder: Path) -> str:
    """Compile with every stage written to `folder`; the error, where there is one, with its traceback."""
    options = replace(settings.options, dump_to=str(folder), dump_weights=False, cache_dir=None)
    try:
        model = onnxla.compile(
            text,
            target=settings.target,
            shapes=shapes,
            constants=run.constants or None,
            options=options,
            num_threads=settings.threads,
        )
        if not model.programs:  # values of inputs decide shapes
            model.run(None, dict(run.feeds))
    except Exception as error:  # whatever it is, it is what the report is about
        return "".join(traceback.format_exception(error))
    return ""


def _readme(command: str, replaced: int | None, seed: int | None, failed: bool) -> str:
    weights = (
        "as they are" if replaced is None else f"{replaced} tensors of random numbers (seed {seed}) in their place"
    )
    lines = [
        f"A report by onnxla {__version__}.",
        "",
        "model.onnx    the model; weights: " + weights,
        "inputs.npz    the inputs of the run",
        "command.txt   the command that made this report",
        "machine.json  versions and machine, as `onnxla doctor --json` says",
        "dump/         HLO before and after each pass, plan, memory, kernels as LLVM IR and assembly, or CUDA and PTX",
        *(["error.txt     compiling failed: the error"] if failed else []),
        "",
        "onnxla debug model.onnx --input inputs.npz",
    ]
    return "\n".join(lines) + "\n"


def _pack(path: Path, folder: Path) -> list[str]:
    names = []
    with (
        writing_to(path),
        writing(path) as written,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, data in _files(folder):
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), data, zipfile.ZIP_DEFLATED)
            names.append(name)
    return names


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        data = path.read_bytes()
        yield name, data if path.suffix in (".onnx", ".npz") else safe(data.decode(errors="replace")).encode()
