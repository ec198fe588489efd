"""`pyproject.toml` lists every package under the name it is imported by, and the links say the same on disk."""

import tomllib
from pathlib import Path

from onnxla.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
LINKED = ("frontends", "passes", "codegen", "cli")


def packages_under(folder: Path, name: str, skip: tuple[str, ...] = ()) -> set[str]:
    """Dotted names of the packages in `folder`, which is imported as `name`."""
    found = set()
    for init in folder.rglob("__init__.py"):
        parts = init.parent.relative_to(folder).parts
        if not parts or parts[0] not in skip:
            found.add(".".join([name, *parts]))
    return found


def test_every_package_is_listed() -> None:
    found = set()
    for name, folder in SETUPTOOLS["package-dir"].items():
        found |= packages_under(ROOT / folder, name, LINKED if name == "onnxla" else ())
    assert set(SETUPTOOLS["packages"]) == found


def test_the_links_lead_to_the_folders_of_their_names() -> None:
    for name in LINKED:
        link = ROOT / "onnxla" / name
        assert link.is_symlink()
        assert link.readlink() == Path("..") / name
        assert SETUPTOOLS["package-dir"][f"onnxla.{name}"] == name


def test_nothing_but_onnxla_is_installed() -> None:
    assert all(name == "onnxla" or name.startswith("onnxla.") for name in SETUPTOOLS["packages"])


def test_the_version_is_one() -> None:
    assert PROJECT["project"]["version"] == __version__


def test_files_that_are_no_python_are_installed() -> None:
    """What lies beside the code is there to be read by it."""
    listed = {
        (package_folder(name) / file).resolve() for name, files in SETUPTOOLS["package-data"].items() for file in files
    }
    assert all(path.is_file() for path in listed)
    found = {
        path.resolve()
        for name in SETUPTOOLS["packages"]
        for path in package_folder(name).rglob("*")
        if path.is_file()
        and path.suffix not in (".py", ".pyc")
        and not {"__pycache__", ".mypy_cache"} & set(path.parts)
    }
    assert found == listed


def package_folder(name: str) -> Path:
    """Where a package lies in the repository."""
    return ROOT.joinpath(*name.split("."))
