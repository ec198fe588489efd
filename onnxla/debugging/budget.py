"""How long a search may go on, and how far it says it is."""

import time
from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float], None]
"""Told what is being done, and the part of the time that is used, from 0 to 1."""


class Budget:
    """Time for a search. What is under way when it is over is finished; nothing more is begun."""

    def __init__(self, seconds: float, progress: Progress | None = None) -> None:
        self.seconds = seconds
        self._progress = progress
        self._begun = time.monotonic()

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - (time.monotonic() - self._begun))

    @property
    def is_over(self) -> bool:
        return self.left <= 0

    def says(self, what: str) -> None:
        """Tell whoever waits what is being done now."""
        if self._progress is not None:
            self._progress(what, min(1.0, 1 - self.left / self.seconds if self.seconds else 1.0))
