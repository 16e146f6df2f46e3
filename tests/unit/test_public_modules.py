"""The modules that a project may import: the architecture page, the import contract and the list of names agree."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from tests.docs.pages import code, table
from tests.unit.test_public_names import NAMES

#: The most modules and packages at the top, modules in a folder, and lines of a file.
MAX_TOP, MAX_MODULES, MAX_LINES = 38, 15, 600
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "dynamo_single"


def modules() -> set[str]:
    """The modules and packages of the app."""
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    return files | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def folders() -> set[str]:
    """The packages of the app, at every depth, by their path."""
    return {f"{path.parent.relative_to(PACKAGE)}/" for path in PACKAGE.glob("*/**/__init__.py")}


@cache
def private() -> set[str]:
    """Return the modules that the import contract hides from ``accounts`` and the project."""
    settings: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (found,) = (each for each in contracts if each["name"] == "accounts and the project use public names only")
    return {name.removeprefix("dynamo_single.") for name in found["forbidden_modules"]}


def test_every_module_at_the_top_is_public_or_private() -> None:
    """The list of public names has each module that the import contract does not keep to the app."""
    public = {name.split(".")[1] for name in NAMES}
    assert public | {name for name in private() if "." not in name} == modules()
    assert not public & private()


def test_every_folder_of_contrib_is_public_or_private() -> None:
    """The import contract keeps those to the app that have no line in the list of public names."""
    folders = {f"contrib.{path.parent.name}" for path in (PACKAGE / "contrib").glob("*/__init__.py")}
    public = {".".join(name.split(".")[1:3]) for name in NAMES if name.startswith("dynamo_single.contrib.")}
    assert folders - public == {name for name in private() if name.startswith("contrib.")}


def test_every_folder_has_a_sentence_on_the_architecture_page() -> None:
    """The page's table names each folder once."""
    listed = [code(row[0])[0] for row in table(ROOT / "docs/architecture.md", "Folders")]
    assert sorted(listed) == sorted(folders() - {"management/commands/", "contrib/tasks/management/commands/"})


def test_every_public_module_has_a_sentence_on_the_architecture_page() -> None:
    """The page's table of files names each one at the top."""
    listed = [
        name.removesuffix(".py") for row in table(ROOT / "docs/architecture.md", "Files") for name in code(row[0])
    ]
    assert sorted(listed) == sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")


def test_few_modules_and_packages_lie_at_the_top() -> None:
    """A newcomer reads their names first; ``__init__``, ``py.typed``, templates and static files aside."""
    assert len(modules()) <= MAX_TOP


def test_no_folder_has_many_modules() -> None:
    """More than a page's table lists at a glance; the top, whose public modules have a table, has its own limit."""
    counts = {name: len([*(PACKAGE / name).glob("*.py")]) - 1 for name in folders()}
    assert {name: count for name, count in counts.items() if count > MAX_MODULES} == {}


def test_no_file_is_very_long() -> None:
    """Sizes follow subjects; a file beyond the limit has two."""
    lines = {str(path.relative_to(PACKAGE)): path.read_text().count("\n") for path in PACKAGE.rglob("*.py")}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}
