"""What onnxruntime has for the values inside a model, asked for as they are needed."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from onnxla.debugging.layers import LayeredModel
from onnxla.debugging.parts import flat_outputs
from onnxla.errors import InputError
from onnxla.peers.onnxruntime_peer import OnnxruntimePeer
from onnxla.runtime.tensors import Array

_KEPT_BYTES = 2 << 30
"""Values beyond this are computed again when they are asked for again."""


class KnownValues:
    """onnxruntime's values of one run, by name; the feeds are among them."""

    def __init__(self, layered: LayeredModel, folder: Path, feeds: Mapping[str, Array], threads: int) -> None:
        """Raises InputError where onnxruntime refuses the model."""
        self.names = set(layered.nodes) | set(feeds)
        """The values that there are: tensors."""
        self.version = ""
        self._feeds = dict(feeds)
        self._kept: dict[str, Array] = {}
        self._witness = OnnxruntimePeer(layered.model.SerializeToString(), threads, folder=folder)
        self.version = self._witness.version

    def get(self, names: Iterable[str]) -> dict[str, Array]:
        """The values of `names`, all of which there are. Raises InputError where onnxruntime fails."""
        wanted = dict.fromkeys(names)
        missing = [name for name in wanted if name not in self._feeds and name not in self._kept]
        if missing:
            found = flat_outputs(self._witness.run(self._feeds, missing))
            strange = [name for name in missing if name not in found]
            if strange:
                raise InputError(f"onnxruntime gives no tensor for {', '.join(strange)}")
            if sum(a.nbytes for a in (*self._kept.values(), *found.values())) > _KEPT_BYTES:
                self._kept = {name: a for name, a in self._kept.items() if name in wanted}
            self._kept |= found
        return {name: self._feeds[name] if name in self._feeds else self._kept[name] for name in wanted}
