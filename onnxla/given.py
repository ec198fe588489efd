"""Numbers that users give, for every layer: sizes, shapes, counts of threads and runs, bounds, tolerances.

A whole number is what Python takes as an index, but no truth value: 1.5 is not 1, and True is not a size.
"""

import numbers
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from onnxla.errors import InputError


def whole_number(value: Any, what: str, least: int | None = None) -> int:
    """`value` as an int, at least `least`. Raises InputError, which says `what` it is for."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):  # numpy's, which is not imported here
        raise InputError(f"{what}={value!r}: a whole number is needed, not a truth value")
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{what}={value!r}: a whole number is needed") from None
    if least is not None and number < least:
        raise InputError(f"{what}={number}: at least {least} is needed")
    return number


def number(value: Any, what: str, least: float = 0.0) -> float:
    """`value` as a float of at least `least`, no NaN. Raises InputError."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise InputError(f"{what}={value!r}: a number is needed")
    if not float(value) >= least:
        raise InputError(f"{what}={value!r}: a number of at least {least:g} is needed")
    return float(value)


def whole_numbers(values: Any, what: str, least: int | None = None) -> tuple[int, ...]:
    """A sequence of them. Raises InputError; for a text too, which is a sequence of letters."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"{what}={values!r}: whole numbers are needed, one behind the other")
    return tuple(whole_number(value, what, least) for value in values)


def shapes_of(shapes: Any, what: str = "shapes") -> dict[str, tuple[int, ...]]:
    """Shapes by name. Raises InputError."""
    return {name: whole_numbers(shape, f"{what}[{name!r}]") for name, shape in _by_name(shapes, what).items()}


def sizes_of(dims: Any, what: str = "dims") -> dict[str, tuple[int, ...]]:
    """Sizes by dimension: those given, each once, in their order; one size is a list of one. Raises InputError."""
    found = {}
    for name, sizes in _by_name(dims, what).items():
        given = f"{what}[{name!r}]"
        is_one = not isinstance(sizes, Iterable) or isinstance(sizes, (str, bytes)) or getattr(sizes, "ndim", 1) == 0
        each = (whole_number(sizes, given),) if is_one else whole_numbers(sizes, given)
        if not each:
            raise InputError(f"no sizes given for dimension {name}")
        found[name] = tuple(dict.fromkeys(each))
    return found


def _by_name(given: Any, what: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"{what} are given by name, not as {type(given).__name__}")
    odd = [name for name in given if not isinstance(name, str)]
    if odd:
        raise InputError(f"{what}: {odd[0]!r} is no name")
    return given
