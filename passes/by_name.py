"""Passes by their names, for those who run single ones: `onnxla opt`, and the text tests."""

import importlib
import inspect
import pkgutil
from typing import Any

import onnxla.passes
from onnxla.config import CompileOptions
from onnxla.errors import InputError
from onnxla.passes.pass_base import Pass


def pass_named(name: str, options: CompileOptions) -> Pass:
    """A new pass of that name. Raises InputError for a name there is not."""
    classes = pass_classes()
    if name not in classes:
        raise InputError(f"no pass is called {name!r}; the passes are {', '.join(classes)}")
    takes_options = "options" in inspect.signature(classes[name]).parameters
    made: Pass = classes[name](options=options) if takes_options else classes[name]()
    return made


def pass_classes() -> dict[str, Any]:
    """Every pass, wherever under `passes` its class is, by name in alphabetical order."""
    for module in pkgutil.walk_packages(onnxla.passes.__path__, "onnxla.passes."):
        importlib.import_module(module.name)
    found: dict[str, Any] = {}
    classes: list[Any] = [Pass]
    while classes:
        cls = classes.pop()
        classes += cls.__subclasses__()
        if hasattr(cls, "name"):
            found[cls.name] = cls
    return dict(sorted(found.items()))
