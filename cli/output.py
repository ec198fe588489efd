"""What the commands print: text for people, one JSON document for scripts, nothing that a model could smuggle in.

Results go to standard output, progress and errors to standard error. Names come from models, so control characters
are spelled out before they reach a terminal, and no text is read as markup. Line breaks are ours: names of the model
that a command reads are told to `keep_in_line`, and none of them breaks a line of any report or error.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from onnxla.errors import harmless, harmless_line

_WIDE = 200
"""Columns where there is no terminal to ask: nothing is cut in a pipe."""
_TELLING = 0.08
"""The part of the work after which its speed says something about the rest."""


_NAMES: dict[str, str] = {}
"""Names with line breaks or tabs in them, and how they are printed."""


def keep_in_line(names: Iterable[str]) -> None:
    """From now on, until the next command, these names are printed in one line wherever they occur."""
    for name in names:
        if "\n" in name or "\t" in name:
            _NAMES[name] = _NAMES[harmless(name)] = harmless_line(name)  # errors make their texts harmless themselves


def forget_names() -> None:
    """A new command begins, which reads a model of its own."""
    _NAMES.clear()


def safe(text: object) -> str:
    """`text` without characters that a terminal would act on: they are written as `\\x1b`."""
    plain_text = str(text)
    for name in sorted(_NAMES, key=len, reverse=True):
        plain_text = plain_text.replace(name, _NAMES[name])
    return harmless(plain_text)


def console() -> Console:
    """Standard output, of which no text is read as markup."""
    return _console(sys.stdout.isatty())


def error_console() -> Console:
    return _console(sys.stderr.isatty(), stderr=True)


def _console(is_terminal: bool, stderr: bool = False) -> Console:
    width = None if is_terminal else _WIDE
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True, width=width)


def say(text: object = "", style: str = "") -> None:
    """Print lines of text."""
    console().print(Text(safe(text), style=style))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> None:
    """Print a table, each row in a line. Columns whose name starts with `>` are numbers, and stand to the right."""
    out = Table(box=box.SIMPLE_HEAD, title=Text(safe(title), style="bold") if title else None, title_justify="left")
    for column in columns:
        out.add_column(Text(column.lstrip(">")), justify="right" if column.startswith(">") else "left", overflow="fold")
    for row in rows:
        out.add_row(*(cell if isinstance(cell, Text) else Text(harmless_line(str(cell))) for cell in row))
    console().print(out, soft_wrap=False)


def signature_line(tensors: Sequence[object]) -> str:
    """Inputs or outputs in one line."""
    return ", ".join(map(str, tensors)) or "nothing"


def verdict(good: bool, text: str) -> Text:
    """A word that says whether something holds, in its colour."""
    return Text(text, style="bold green" if good else "bold red")


def print_json(document: object) -> None:
    """Print one JSON document. Numbers that JSON does not know become the strings `nan`, `inf` and `-inf`."""
    print(json.dumps(plain(document), indent=2, ensure_ascii=True, allow_nan=False))


def plain(value: object) -> Any:
    """`value` as what JSON knows: dataclasses by field, arrays as lists, keys as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def size(count: int) -> str:
    """`12.3 MB`."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"


def count(number: int, what: str) -> str:
    """`1 file`, `2 files`, `0 entries`."""
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else plural}"


def duration(seconds: float) -> str:
    """`1.23 s`, `4.56 ms`, `7.9 us`."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error, where that is a terminal; gives the function that is told stage and part done."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[rest]}", markup=False),
        TextColumn("{task.fields[stage]}", markup=False),
    )
    console = error_console()
    hidden = not console.is_terminal
    start: float | None = None  # the clock starts with the work, not with importing what does it
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(harmless_line(what), total=1.0, stage="", rest="")

        def tell(stage: str, part: float) -> None:
            nonlocal start
            start = time.monotonic() if start is None else start
            rest = time_left(time.monotonic() - start, part)
            bar.update(task, completed=part, stage=harmless_line(stage), rest=rest)

        yield tell


def time_left(elapsed: float, part: float) -> str:
    """How long the rest takes if it goes on like this: `12 s left`; nothing while nobody can tell."""
    if part < _TELLING or elapsed < 1:
        return ""
    seconds = round(elapsed * (1 - part) / part)
    return f"{seconds} s left" if seconds < 90 else f"{round(seconds / 60)} min left"
