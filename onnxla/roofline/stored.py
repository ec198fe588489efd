"""Limits of this machine, measured once and kept in a file of the user's cache folder."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from onnxla.codegen.cpu.target import Target, host_target
from onnxla.config import RuntimeSettings
from onnxla.files import write_file
from onnxla.roofline.limits import Limits
from onnxla.roofline.measure import measure_limits
from onnxla.version import __version__

_MEASURED = "reads of written pages, one part a thread"
"""How they are measured: what was measured in another way is not taken for it."""


def limits_file() -> Path:
    """Where limits are kept: ONNXLA_LIMITS_FILE, or in the folder that the system has for such files."""
    given = RuntimeSettings.from_environment().limits_file
    if given is not None:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".cache"
    return base / "onnxla" / "limits.json"


def machine_limits(threads: int, *, again: bool = False) -> Limits:
    """What `threads` threads of this machine can do; measured where nobody has yet, or `again`: then the better counts.

    A file that cannot be written only means that the next call measures too.
    """
    target = host_target()
    path, key = limits_file(), _key(target, threads)
    known = _read(path)
    before = None
    if key in known:
        with suppress(KeyError, TypeError, ValueError):
            before = Limits.from_json(known[key])
    if before is not None and not again:
        return before
    limits = measure_limits(threads, target)
    if before is not None:
        limits = limits.improved_by(before)
    with suppress(OSError):
        _write(path, {**known, key: limits.json()})
    return limits


def _key(target: Target, threads: int) -> str:
    return f"onnxla {__version__}, {_MEASURED}, {threads} threads, {target}"


def _read(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(path: Path, known: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_file(path, json.dumps(known, indent=1, sort_keys=True) + "\n")
