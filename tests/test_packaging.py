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
