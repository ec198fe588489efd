"""`Variant`: the code of one model for one set of input shapes, as the scheduler sees it."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnxla.runtime.model import CompiledModel
from onnxla.serving.requests import Array
from onnxla.serving.rows import RowsPlan

_numbers = itertools.count()


class Variant:
    """Code, and how long it was measured to run."""

    __slots__ = ("__weakref__", "_run", "artifact", "model", "number", "positions", "rows", "seconds")

    def __init__(
        self,
        model: CompiledModel,
        rows: RowsPlan | None,
        artifact: Path | None,
        positions: Sequence[int] | None = None,
    ) -> None:
        """`positions` are the inputs that the code takes, where it was made for the values of the others."""
        self.model = model
        self.rows = rows
        """None where requests are run as they come."""
        self.artifact = artifact
        self.positions = positions
        self.seconds: dict[int, float] = {}
        """By the rows of the code; 0 where there are none. Short ones are believed at once, long ones slowly: they may
        have waited for a core."""
        self.number = next(_numbers)
        """Unique in this process."""
        self._run = model.run_in_order

    def run(self, arrays: Sequence[Array]) -> list[Any]:
        """All outputs. Raises OnnxlaErrors."""
        if self.positions is not None:
            arrays = [arrays[k] for k in self.positions]
        return self._run(arrays)

    def measured(self, size: int, seconds: float) -> None:
        known = self.seconds.get(size)
        if known is None or seconds < known:
            self.seconds[size] = seconds
        else:
            self.seconds[size] = known + (seconds - known) * 0.02
