"""What a file was compiled to before, found by the file's bytes and by all else that decides the code.

The compile cache finds a program by what the model means, for which the model must be read and the compiler loaded.
Beside its entries it keeps for each call of `compile` with a file which entries that led to, under a key that is known
without either: hashing a file of 100 MB takes 40 ms on two cores. The entries themselves are found and checked as ever.

It is for ONNX models in one file, for this CPU. It is an aid: where it cannot be read or written, the model is read.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any

from onnxla import watch
from onnxla.call import Call, Cut
from onnxla.errors import OnnxlaError
from onnxla.files import open_file, write_file
from onnxla.makers import compiler_digest, libraries, version_of
from onnxla.runtime.artifact import FORMAT_VERSION
from onnxla.runtime.cache import CacheKey, CompileCache
from onnxla.runtime.cache_files import RECOLLECTION_SUFFIX, RECOLLECTIONS, note_use, open_folder, unfit_reason
from onnxla.runtime.consistency import require_consistent
from onnxla.runtime.digest import digest_of_all, digest_of_file
from onnxla.runtime.machine import cpu_identity
from onnxla.runtime.manifest import constant_data, signature_json, signature_of_json
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import Program
from onnxla.runtime.report import CompileReport
from onnxla.runtime.signature import ModelSignature
from onnxla.version import __version__

_OF_A_COMPILE = ("seconds", "memory_bytes", "peak_memory_bytes", "passes", "from_cache")
"""What a report says of the compile itself and not of what was made."""


def recollection_of(call: Call) -> "Recollection | None":
    """The recollection of a call; None for calls that are not kept: without a cache, of no file, or for more than code
    for this CPU."""
    options = call.options
    is_file = isinstance(call.model, (str, os.PathLike))
    wants_more = options.dump_to is not None or options.pad_to_bucket or options.tune_seconds
    if not is_file or options.cache_dir is None or wants_more or call.fallback is not None:
        return None
    if call.targets != ("cpu",) or call.cut != Cut() or cpu_identity() is None:
        return None
    return Recollection(call, CompileCache(options.cache_dir, options.cache_bytes))


@dataclass(frozen=True)
class Recollection:
    """Of one call."""

    call: Call
    cache: CompileCache

    def recall(self) -> CompiledModel | None:
        """What the call gave before; None where nobody knows, or where an entry is gone."""
        start = perf_counter()
        try:
            path = self._path_of_file()
            if path is None or unfit_reason(path) != "":
                return None
            stored = _opened(path)
            interface = signature_of_json(stored["interface"])
            programs: list[Program] = []
            for one in stored["programs"]:
                program = self.cache.get(CacheKey(one["key"]))
                if program is None:
                    return None
                programs.append(program)
            require_consistent(interface, programs, {})
        except (OSError, ValueError, KeyError, TypeError, OnnxlaError):
            return None
        note_use(path)
        seconds = (perf_counter() - start) / len(programs)
        return CompiledModel(
            interface,
            programs,
            constants=self.call.constants,
            num_threads=self.call.num_threads,
            about=stored["about"],
            reports=[_report(one["report"], seconds) for one in stored["programs"]],
            device=self.call.device,
        )

    def keep(
        self,
        content: Callable[[], tuple[int, str] | None],
        interface: ModelSignature,
        about: Mapping[str, Any],
        made: Sequence[tuple[CacheKey | None, CompileReport]],
    ) -> None:
        """Note what the call has given. `content` gives size and digest of the bytes that were compiled, whatever the
        file holds now; None where they are not the whole model. Nothing is noted of programs that the cache has not."""
        keys = [key for key, _ in made if key is not None]
        found = content() if made and len(keys) == len(made) else None
        if found is None:
            return
        programs = [
            {"key": dict(key.parts), "report": _stored(report)} for key, (_, report) in zip(keys, made, strict=True)
        ]
        text = json.dumps({"interface": signature_json(interface), "about": about, "programs": programs})
        path = self._path(*found)
        with suppress(OSError, OnnxlaError):
            open_folder(self._folder)
            write_file(path, f"{_seal(path, text)}\n{text}")

    def _path_of_file(self) -> Path | None:
        """The path for what the file holds; None where nothing is known of a file of this size, which is not hashed."""
        with open_file(self.call.model) as file:
            size = os.fstat(file.fileno()).st_size
            if not any(self._folder.glob(f"{size}-*{RECOLLECTION_SUFFIX}")):
                return None
            return self._path(size, digest_of_file(file.fileno()))

    @property
    def _folder(self) -> Path:
        return self.cache.folder / RECOLLECTIONS

    def _path(self, size: int, digest: str) -> Path:
        """The file for the model's bytes and everything else that decides what is made of them."""
        call = self.call
        constants = [part for name, value in sorted(call.constants.items()) for part in (name, *constant_data(value))]
        key = digest_of_all(
            [
                digest,
                Path(call.model).name,
                repr(sorted(call.shapes.items())),
                repr(list(call.dims.items())),
                digest_of_all(constants),
                repr(call.options.code_options()),
                repr(call.limits),
                str(cpu_identity()),
                f"onnxla {__version__}, format {FORMAT_VERSION}, {libraries()}, onnx {version_of('onnx')}",
                compiler_digest(),
            ]
        )
        return self._folder / f"{size}-{key}{RECOLLECTION_SUFFIX}"


def _seal(path: Path, text: str) -> str:
    """The first line of a recollection: it is of that file name, which is its key, and nobody has changed it."""
    return digest_of_all([path.name, text])


def _opened(path: Path) -> dict[str, Any]:
    """What a recollection says. Raises ValueError where its seal is broken, OSError where it cannot be read."""
    seal, _, text = path.read_text().partition("\n")
    if seal != _seal(path, text):
        raise ValueError("damaged, or a recollection of another call")
    stored: dict[str, Any] = json.loads(text)
    return stored


def _stored(report: CompileReport) -> dict[str, Any]:
    return {f.name: getattr(report, f.name) for f in fields(report) if f.name not in _OF_A_COMPILE}


def _report(stored: Mapping[str, Any], seconds: float) -> CompileReport:
    return CompileReport(**stored, seconds={"cache": seconds}, from_cache=True, peak_memory_bytes=watch.peak_memory())
