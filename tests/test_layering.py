"""Imports point one way, and a compiled model runs without the compiler."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from onnxla.makers import ABOVE

ROOT = Path(__file__).parent.parent
FOLDERS = {"onnxla.frontends": "frontends", "onnxla.passes": "passes", "onnxla.codegen": "codegen", "onnxla.cli": "cli"}

BASE = "errors version files given watch config"
LAYERS = {
    "errors": "",
    "version": "",
    "files": "",
    "given": "errors",
    "watch": "errors",
    "error_json": "errors",
    "config": "errors given",
    "hlo": BASE,
    "frontends": f"{BASE} hlo",
    "passes": f"{BASE} hlo",
    "codegen": f"{BASE} hlo",
    "runtime": BASE,
    "makers": "",
    "call": f"{BASE} runtime",
    "recollection": f"{BASE} runtime makers call",
    "inside": f"{BASE} hlo codegen runtime",
    "tuning": f"{BASE} hlo codegen runtime",
    "roofline": f"{BASE} hlo codegen runtime",
    "ahead": f"{BASE} codegen runtime",
    "page": f"{BASE} hlo codegen runtime inside roofline",
    "compiler": f"{BASE} hlo frontends passes codegen runtime inside page tuning makers call recollection",
    "fallback": f"{BASE} hlo frontends runtime compiler",
    "compile_call": f"{BASE} frontends runtime call recollection compiler fallback",
    "api": f"{BASE} frontends runtime call recollection compiler compile_call",
    "backend": f"{BASE} frontends runtime api",
    "conformance": f"{BASE} backend",
    "compat": f"{BASE} hlo frontends runtime api backend",
    "peers": f"{BASE} runtime",
    "debugging": f"{BASE} hlo frontends passes codegen runtime compiler peers",
    "serving": f"{BASE} error_json hlo frontends codegen runtime makers compiler page api",
    "client": f"{BASE} error_json hlo frontends codegen serving",
    "integrations": f"{BASE} runtime api serving",
}
"""What each layer may import of onnxla besides itself. `onnxla` itself and the command line may import everything."""
MAY_IMPORT = {f"onnxla.{name}": {f"onnxla.{n}" for n in (name, *below.split())} for name, below in LAYERS.items()}


def layer_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def sources(layer: str) -> Iterator[Path]:
    place = ROOT / FOLDERS.get(layer, layer.replace(".", "/"))
    yield from place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]


def module_of(path: Path) -> str:
    """`onnxla.passes.rewrite` for `passes/rewrite.py`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("onnxla", *parts) if parts[0] in FOLDERS.values() else parts)


def is_behind_a_link(path: Path) -> bool:
    """Whether a path goes through one of the links in `onnxla/`."""
    return path.relative_to(ROOT).parts[1] in FOLDERS.values()


def imports(path: Path, for_types: bool = False) -> Iterator[str]:
    """The modules that a file imports anywhere in it, by full name; those for type checkers alone do not count.

    With `for_types` they do, and everything that is taken from a module, which may be one itself.
    """
    tree = ast.parse(path.read_text())
    skipped = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING") and not for_types
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module or ""
            if node.module == "onnxla" or for_types:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_imports_point_one_way(layer: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources(layer)
        for module in imports(path)
        if module.startswith("onnxla.") and layer_of(module) not in MAY_IMPORT[layer]
    ]
    assert not wrong, "\n".join(wrong)


RECURSIVE = ("onnxla.hlo.op", "onnxla.hlo.module")
"""HLO is recursive: an operation may call computations, which hold operations. `op.py` names them in types alone."""


def test_files_need_each_other_one_way() -> None:
    """In types too: a reader of one file never has to know the file that knows it."""
    paths = (path for folder in ("onnxla", *FOLDERS.values()) for path in (ROOT / folder).rglob("*.py"))
    files = {module_of(path): path for path in paths if path.stem != "__init__" and not is_behind_a_link(path)}
    needed = {name: {*imports(path, for_types=True)} & files.keys() - {name} for name, path in files.items()}
    needed[RECURSIVE[0]].remove(RECURSIVE[1])
    try:
        list(TopologicalSorter(needed).static_order())
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


@pytest.mark.parametrize(
    ("layer", "banned"),
    [
        ("onnxla.hlo", {"onnx", "llvmlite", "onnxruntime"}),
        ("onnxla.passes", {"onnx", "llvmlite", "onnxruntime"}),
        ("onnxla.codegen", {"onnx", "onnxruntime"}),
        ("onnxla.frontends", {"llvmlite", "onnxruntime"}),
        ("onnxla.runtime", {"onnx"}),
    ],
)
def test_a_layer_knows_only_its_own_libraries(layer: str, banned: set[str]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources(layer)
        for module in imports(path)
        if module.split(".")[0] in banned
    ]
    assert not wrong, "\n".join(wrong)


def test_onnxruntime_is_loaded_in_two_places_and_when_it_is_needed() -> None:
    """The one that runs what cannot be compiled, and the judge: no other file of the runtime, above all."""
    files = {p.relative_to(ROOT).as_posix() for p in sources("onnxla") if "onnxruntime" in set(imports(p))}
    assert files <= {
        "onnxla/runtime/onnxruntime_part.py",
        "onnxla/peers/onnxruntime_peer.py",
    } | {p for p in files if p.startswith(("onnxla/cli/", "onnxla/conformance/"))}


def test_only_the_command_line_looks_for_faults() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources("onnxla")
        if not {"cli", "debugging"} & set(path.relative_to(ROOT).parts)
        for module in imports(path)
        if layer_of(module) == "onnxla.debugging"
    ]
    assert not wrong, "\n".join(wrong)


def test_the_layers_are_those_there_are() -> None:
    """A layer that moved would pass every test above, and one that is new too."""
    found = {layer_of(module_of(path)) for path in (ROOT / "onnxla").rglob("*.py")} | FOLDERS.keys()
    assert found - MAY_IMPORT.keys() == {"onnxla.__init__", "onnxla.__main__", "onnxla.cli"}
    assert MAY_IMPORT.keys() <= found


def test_what_stands_above_the_compiler_has_no_hand_in_code() -> None:
    """So its source is no part of what the compile cache goes by."""
    wrong = {name: ABOVE & {*below.split()} for name, below in LAYERS.items() if name not in ABOVE}
    assert not any(wrong.values()), wrong


def test_layers_lie_on_one_another() -> None:
    assert list(TopologicalSorter({name: below.split() for name, below in LAYERS.items()}).static_order())


def test_the_runtime_loads_no_compiler() -> None:
    """Checked in a new process, over every module of the runtime, transitively."""
    modules = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in sources("onnxla.runtime")]
    program = (
        "import importlib, sys\n"
        f"for name in {sorted(m.removesuffix('.__init__') for m in modules)}: importlib.import_module(name)\n"
        "print(' '.join(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    compiler = ("onnx", "onnxruntime", "llvmlite", "onnxla.frontends", "onnxla.passes", "onnxla.codegen", "onnxla.hlo")
    assert not [m for m in loaded if m in compiler or m.startswith(tuple(f"{c}." for c in compiler))]
