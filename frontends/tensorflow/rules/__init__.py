"""The import rules: one function per operation, one file per family.

Every module of this folder is loaded; a file of rules needs no entry anywhere else.
"""

import importlib
import pkgutil


def load() -> None:
    """Import every file of rules, which registers them."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
