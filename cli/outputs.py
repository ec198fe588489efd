"""Where a command writes: never over the model it reads, nor two things into one file."""

import os
from pathlib import Path

from onnxla.errors import InputError


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
