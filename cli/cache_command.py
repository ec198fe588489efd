"""`onnxla cache`: what the compile cache holds, and why a model is found in it or not."""

import time
from pathlib import Path
from typing import Annotated

import typer

from onnxla.cli import arguments
from onnxla.cli.models import Request, request
from onnxla.cli.output import print_json, say, size, table
from onnxla.errors import InputError
from onnxla.runtime.cache import CompileCache

Asked = Annotated[Path | None, typer.Argument(help="A model: say whether its code is in the cache, and why not.")]
Clear = Annotated[bool, typer.Option("--clear", help="Remove every entry.")]


def cache(
    model: Asked = None,
    clear: Clear = False,
    target: arguments.Target = "cpu",
    shape: arguments.ShapeTexts = None,
    dim: arguments.DimTexts = None,
    constant: arguments.ConstantTexts = None,
    option: arguments.OptionTexts = None,
    as_json: arguments.Json = False,
) -> None:
    """List the compile cache (the folder in ONNXLA_CACHE_DIR, or --option cache_dir=...), explain it, or clear it."""
    options = arguments.parse_options(option)
    if options.cache_dir is None:
        raise InputError("there is no cache: set ONNXLA_CACHE_DIR, or give --option cache_dir=FOLDER")
    store = CompileCache(options.cache_dir, options.cache_bytes)
    if clear:
        store.clear()
    found = store.entries()
    answer = None if model is None else explain_miss(store, request(model, shape, dim, constant, option, target=target))
    if as_json:
        print_json({"folder": str(store.folder), "limit": store.max_bytes, "entries": found, "model": answer})
        return
    if answer is not None:
        say(answer)
        return
    rows = [(e.path.name[:16], size(e.bytes), time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used))) for e in found]
    table(("entry", ">size", "last used"), rows)
    total = sum(e.bytes for e in found)
    say(f"{len(found)} entries, {size(total)} of {size(store.max_bytes)} in {store.folder}", style="dim")


def explain_miss(store: CompileCache, wanted: Request) -> str:
    """`hit`, or in what the nearest entry differs."""
    from onnxla.compiler import Compiler
    from onnxla.hlo.printer import print_module

    source = wanted.source()
    compiler = Compiler(source, wanted.target, wanted.options)
    imported = source.load(wanted.shapes, wanted.single_dims, {})
    return store.explain(compiler.cache_key(imported, print_module(imported.module)))
