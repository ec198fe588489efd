"""What the engine knows of one model of the repository: what is served, what is not and why, and when to try again."""

import asyncio
import logging
import math
import time
from dataclasses import dataclass, field

from onnxla.errors import harmless_line
from onnxla.serving.errors import InvalidRequestError, ServingError
from onnxla.serving.repository import ModelFiles
from onnxla.serving.served_version import ServedVersion

_MOST_RETRIES = 5
_LOG = logging.getLogger("onnxla.serving")


@dataclass
class KnownModel:
    """Belongs to the event loop."""

    name: str
    versions: dict[str, ServedVersion] = field(default_factory=dict)
    newest: ServedVersion | None = None
    states: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of versions that are not served: state and reason."""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    override: str | None = None
    """The configuration that somebody gave when loading."""
    tried: ModelFiles | None = None
    """Files and configuration of the last load."""
    told: str = ""
    """Why the last look at its files failed, which is logged once."""
    _retries: int = 0
    """How often these files were, or will be, tried again."""
    _retry_at: float = math.inf
    """When they will be (`time.monotonic()`)."""

    def take(self, files: ModelFiles) -> None:
        """These files are loaded now."""
        if files != self.tried:
            self._retries = 0
        self.tried, self._retry_at = files, math.inf

    def is_due(self, files: ModelFiles) -> bool:
        """Whether the files are others than those of the last load, or it is time to try the same again."""
        return files != self.tried or time.monotonic() >= self._retry_at

    def plan_retry(self, error: ServingError, seconds: float) -> None:
        """After a load that failed: try the same files again `seconds` later, and then each time twice as much later.

        Where the files are at fault, or have been tried often enough, only others are.
        """
        if isinstance(error, InvalidRequestError):
            return
        if self._retries == _MOST_RETRIES:
            _LOG.error("model %s is not tried again until its files change", harmless_line(self.name))
            return
        wait = seconds * 2**self._retries
        self._retries += 1
        self._retry_at = time.monotonic() + wait
        _LOG.warning("model %s is tried again in %g s", harmless_line(self.name), wait)
