"""`onnxla cache`: what the compile cache holds, why a model is found in it or not, and making room in it."""

import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from onnxla.cli import arguments
from onnxla.cli.argument_groups import Compilation, Cut, Sizes, flat
from onnxla.cli.feeds import require_sizes
from onnxla.cli.models import Request, request
from onnxla.cli.output import count, print_json, say, size, table, verdict
from onnxla.config import CompileOptions
from onnxla.errors import InputError
from onnxla.runtime.cache import CompileCache, KeyComparison
from onnxla.runtime.cache_files import CacheEntry

cache = typer.Typer(
    no_args_is_help=True,
    help="The compile cache: the folder in ONNXLA_CACHE_DIR, or --folder.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folder = Annotated[Path | None, typer.Option("--folder", help="The cache's folder; by default ONNXLA_CACHE_DIR.")]
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SHORT = 40
"""Characters of a part of a key that are shown: digests and lists of CPU features are longer."""


@cache.command("list")
def list_entries(folder: Folder = None, as_json: arguments.Json = False) -> None:
    """List the entries, those used last first."""
    store = _store(folder)
    rows = [_row(store, entry) for entry in store.entries()]
    if as_json:
        print_json({"folder": str(store.folder), "limit": store.max_bytes, "entries": rows})
        return
    table(
        ("entry", "model", "inputs", "target", ">size", "last used"),
        [
            (r["name"][:12], r["model"], r["inputs"] or r["problem"], r["target"], size(r["bytes"]), _day(r["used"]))
            for r in rows
        ],
    )
    used = size(sum(r["bytes"] for r in rows))
    say(f"{count(len(rows), 'entry')}, {used} of {size(store.max_bytes)} in {store.folder}", style="dim")


@cache.command("explain")
@flat
def explain(
    model: arguments.UncompiledModel,
    *,
    folder: Folder = None,
    target: arguments.Target = "cpu",
    sizes: Sizes,
    option: arguments.OptionTexts = None,
    cut: Cut,
    as_json: arguments.Json = False,
) -> None:
    """Say whether a model's code is in the cache and, part by part of its key, in what the nearest entry differs.

    With several sizes of a dimension it says so for each of them.
    """
    wanted = request(model, Compilation(target=target, sizes=sizes, option=option), cut=cut)
    store = _store(folder, wanted.options)
    each_size = wanted.each_size()
    found = [_compare(store, wanted, dims) for dims in each_size]
    if as_json:
        each = [{"dims": dims, **_explanation(one)} for dims, one in zip(each_size, found, strict=True)]
        print_json(_explanation(found[0]) if len(found) == 1 else {"hit": all(e["hit"] for e in each), "sizes": each})
        return
    for dims, one in zip(each_size, found, strict=True):
        if len(found) > 1:
            say(", ".join(f"{name}={size}" for name, size in dims.items()), style="bold")
        _print_explanation(one)


def _print_explanation(found: KeyComparison | None) -> None:
    if found is None:
        say("miss: the cache is empty")
        return
    say("hit" if found.is_hit else f"miss: the nearest entry differs in {', '.join(p.name for p in found.differing)}")
    say(f"nearest entry {found.entry}, made from {found.model}", style="dim")
    table(
        ("part of the key", "", "this model", "the entry"),
        [
            (
                part.name,
                verdict(part.is_same, "same" if part.is_same else "differs"),
                _short(part.wanted),
                "" if part.is_same else _short(part.stored),
            )
            for part in found.parts
        ],
    )


@cache.command("prune")
def prune(
    folder: Folder = None,
    to_size: Annotated[
        str | None, typer.Option("--to-size", metavar="SIZE", help="Leave as much: `500M`, `2G`; by default the limit.")
    ] = None,
    unused_days: Annotated[
        float | None,
        typer.Option(
            "--unused-days", min=0, callback=arguments.sensible, help="Remove what was not used for so many days."
        ),
    ] = None,
    damaged: Annotated[bool, typer.Option("--damaged", help="Remove what cannot be read or may not be.")] = False,
    servers: Annotated[
        str | None,
        typer.Option("--store", metavar="PLACE", help="Of servers' artifacts instead: a folder, `s3://bucket/place`."),
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """Remove entries: those used longest ago until the rest fits, and leftovers of processes that were killed."""
    if servers is not None:
        if folder is not None or damaged or (to_size is None and unused_days is None):
            raise InputError("--store goes with --to-size or --unused-days, and with nothing else")
        _prune_store(servers, to_size, unused_days, as_json)
        return
    store = _store(folder)
    limit = store.max_bytes if to_size is None else _bytes(to_size)
    seconds = None if unused_days is None else unused_days * 86400

    def unwanted(entry: CacheEntry) -> bool:
        return damaged and store.about(entry) is None

    _say_removed(store, store.prune(limit, seconds, unwanted), as_json)


def _prune_store(place: str, to_size: str | None, unused_days: float | None, as_json: bool) -> None:
    try:
        from onnxla.serving.jobs.prune import prune_store
    except ImportError as error:
        raise InputError("--store needs what servers do: pip install 'onnxla[serve]'") from error
    seconds = None if unused_days is None else unused_days * 86400
    gone = prune_store(place, None if to_size is None else _bytes(to_size), seconds)
    if as_json:
        print_json({"store": place, **asdict(gone)})
        return
    removed = (
        f"{count(len(gone.removed), 'file')} removed, {size(gone.removed_bytes)}, and {count(gone.records, 'record')}"
    )
    say(f"{removed}; {count(gone.left, 'file')} left, {size(gone.left_bytes)}")


@cache.command("clear")
def clear(folder: Folder = None, as_json: arguments.Json = False) -> None:
    """Remove every entry."""
    store = _store(folder)
    _say_removed(store, store.clear(), as_json)


def _store(folder: Path | None, options: CompileOptions | None = None) -> CompileCache:
    options = options or CompileOptions.from_environment()
    place = folder if folder is not None else options.cache_dir
    if place is None:
        raise InputError("there is no cache: set ONNXLA_CACHE_DIR, or give --folder FOLDER")
    return CompileCache(place, options.cache_bytes)


def _row(store: CompileCache, entry: CacheEntry) -> dict[str, Any]:
    """An entry as `list` shows it."""
    row: dict[str, Any] = {"name": entry.path.name, "bytes": entry.bytes, "used": entry.used}
    about = store.about(entry)
    if about is None:
        return {**row, "model": "", "inputs": "", "target": "", "problem": "cannot be read"}
    facts, program = about
    return {
        **row,
        "model": str(facts.get("model", "")),
        "inputs": ", ".join(map(str, program.inputs)),
        "target": f"{program.triple.partition('-')[0]} {program.cpu}",
        "problem": "",
    }


def _compare(store: CompileCache, wanted: Request, dims: dict[str, int]) -> KeyComparison | None:
    from onnxla.compiler.compiler import Compiler
    from onnxla.hlo.printer import print_module

    source = wanted.source()
    require_sizes(source.signature(dims, wanted.shapes).inputs, dims)
    compiler = Compiler(source, wanted.target, wanted.options)
    imported = source.load(wanted.shapes, dims, {})
    return store.compare(compiler.cache_key(imported, print_module(imported.module)))


def _explanation(found: KeyComparison | None) -> dict[str, Any]:
    if found is None:
        return {"hit": False, "entry": None, "model": None, "parts": []}
    parts = [{"name": p.name, "same": p.is_same, "wanted": p.wanted, "stored": p.stored} for p in found.parts]
    return {"hit": found.is_hit, "entry": found.entry, "model": found.model, "parts": parts}


def _say_removed(store: CompileCache, gone: list[CacheEntry], as_json: bool) -> None:
    left = store.entries()
    removed, rest = sum(e.bytes for e in gone), sum(e.bytes for e in left)
    if as_json:
        names = [e.path.name for e in gone]
        print_json({"folder": str(store.folder), "removed": names, "removed_bytes": removed, "left_bytes": rest})
    else:
        say(f"{count(len(gone), 'file')} removed, {size(removed)}; {count(len(left), 'entry')} left, {size(rest)}")


def _bytes(text: str) -> int:
    """`500M` as a number. Raises InputError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip(), re.IGNORECASE)
    if found is None:
        raise InputError(f"--to-size {text}: write it as 500M or 2G")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _short(text: str | None) -> str:
    if text is None:
        return "not there"
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
