"""What a model in another runtime can be asked, whichever runtime it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from onnxla.runtime.tensors import Array


class Peer(Protocol):
    """A model in another runtime, loaded for some number of threads."""

    @property
    def name(self) -> str:
        """The runtime, as the command line calls it."""

    @property
    def version(self) -> str:
        """The version of the runtime."""

    def run(self, feeds: Mapping[str, Array], names: Sequence[str]) -> dict[str, Any]:
        """The outputs of these names, for all inputs by name. Raises InputError where the runtime fails."""

    def runner(self, feeds: Mapping[str, Array]) -> Callable[[], object]:
        """A run of all outputs as the runtime's users call it: what is timed."""
