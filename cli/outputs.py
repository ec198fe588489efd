"""Where a command writes: never over the model it reads, nor two things into one file; files appear whole or not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onnxla.errors import InputError
from onnxla.files import write_file


def require_distinct(model: Path, *outputs: Path | None) -> None:
    """Raises InputError for an output that is the model, by whatever name, or another output."""
    places = {os.path.realpath(model): "the model itself"}
    for output in outputs:
        if output is None:
            continue
        place = os.path.realpath(output)
        if place in places:
            raise InputError(f"{output} is {places[place]}; give the output another name")
        places[place] = "another output"


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """What fails inside is an InputError that says what cannot be written: the way out is another path."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{path} cannot be written: {reason}") from error


def write_output(path: Path, content: bytes | str) -> None:
    """Write a file that the user has asked for. Raises InputError."""
    with writing_to(path):
        write_file(path, content)
