"""The runtimes that a model can be timed beside, and which of them are installed.

A further one is a module with a class that does what `Peer` says, and a row here. None is needed by onnxla but
onnxruntime: the others are imported where somebody asks for them by name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from onnxla.errors import InputError
from onnxla.peers.onnxruntime_peer import OnnxruntimePeer
from onnxla.peers.peer import Peer
from onnxla.runtime.tensors import Array


@dataclass(frozen=True)
class Runtime:
    """One that may be installed."""

    name: str
    package: str
    """What it is called for pip, and for Python."""
    load: Callable[[Path, int, Mapping[str, Array]], Peer]
    """A model from its file, on so many threads, for inputs of these shapes. Raises InputError where it refuses."""

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None

    def __str__(self) -> str:
        return f"{self.name} ({'installed' if self.is_installed else f'pip install {self.package}'})"


def _onnxruntime(model: Path, threads: int, feeds: Mapping[str, Array]) -> Peer:
    return OnnxruntimePeer(model, threads)


def _openvino(model: Path, threads: int, feeds: Mapping[str, Array]) -> Peer:
    from onnxla.peers.openvino_peer import OpenVinoPeer

    return OpenVinoPeer(model, threads, {name: array.shape for name, array in feeds.items()})


JUDGE = "onnxruntime"
"""The runtime that is always there, and whose results are right."""
RUNTIMES = {r.name: r for r in (Runtime(JUDGE, JUDGE, _onnxruntime), Runtime("openvino", "openvino", _openvino))}


def runtimes(names: Sequence[str]) -> list[Runtime]:
    """The judge, then those of `names`, each once. Raises InputError for one that nobody knows or that is missing."""
    unknown = [name for name in names if name not in RUNTIMES]
    if unknown:
        raise InputError(f"there is no runtime {unknown[0]}; there are {', '.join(map(str, RUNTIMES.values()))}")
    chosen = [RUNTIMES[name] for name in dict.fromkeys((JUDGE, *names))]
    missing = [r for r in chosen if not r.is_installed]
    if missing:
        packages = " ".join(r.package for r in missing)
        raise InputError(f"{', '.join(r.name for r in missing)} is not installed\n  hint   pip install {packages}")
    return chosen
