"""Remember what was measured: a file for each site in the folder of the compile cache.

The file's name is a digest of the site (operation, types), the machine, the threads and the compiler's source, so all
models with the same layers share it, and a changed compiler or machine does not find it. What cannot be read counts as
not there; what cannot be written is measured again.
"""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from onnxla.files import read_file, write_file
from onnxla.runtime.cache_files import MEASUREMENT_SUFFIX, MEASUREMENTS, note_use, open_folder, unfit_reason
from onnxla.runtime.digest import digest_of_all


class TuningMemory:
    """What was measured under `circumstances`: machine, threads, compiler, and where weights come from."""

    def __init__(self, cache: Path, circumstances: str) -> None:
        """Makes the folder, for this user only. Raises ArtifactError for one that others may write to."""
        self.folder = cache / MEASUREMENTS
        self.circumstances = circumstances
        open_folder(self.folder)

    def get(self, site: str) -> dict[str, float]:
        """The seconds of each way by its name; empty where nothing is known."""
        path = self._path(site)
        with suppress(OSError, ValueError, TypeError, RecursionError):
            if unfit_reason(path) == "":
                known = {str(name): float(seconds) for name, seconds in dict(json.loads(read_file(path))).items()}
                if all(math.isfinite(seconds) and seconds > 0 for seconds in known.values()):
                    note_use(path)
                    return known
        return {}

    def put(self, site: str, seconds: Mapping[str, float]) -> None:
        with suppress(OSError):
            write_file(self._path(site), json.dumps(dict(seconds), indent=1) + "\n")

    def _path(self, site: str) -> Path:
        return self.folder / (digest_of_all([site, self.circumstances]) + MEASUREMENT_SUFFIX)
