"""`Variant`: the code of one model for one set of input shapes, as the scheduler sees it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnxla.runtime.model import CompiledModel
from onnxla.serving.requests import Array
from onnxla.serving.rows import RowsPlan


class Variant:
    """Code, and how long it was measured to run."""

    __slots__ = ("model", "rows", "artifact", "positions", "seconds", "number", "_run")

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
        self.number = 0
        """Unique among those of one version."""
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
