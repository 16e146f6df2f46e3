"""Which modules a project may import: the architecture page and the import contract say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from tests.docs.pages import code, table

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "dynamo_single"


def modules() -> set[str]:
    """The modules and packages of the app."""
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def public() -> set[str]:
    """What the architecture page calls public."""
    page = (ROOT / "docs/architecture.md").read_text()
    found = re.search(r"^Public are (.*?), and of each", page, re.DOTALL | re.MULTILINE)
    assert found
    return set(re.findall(r"`(\w+)`", found[0]))


def private() -> set[str]:
    """What the import contract keeps from ``accounts`` and the project."""
    settings: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (found,) = (each for each in contracts if each["name"] == "accounts and the project use public names only")
    return {name.removeprefix("dynamo_single.") for name in found["forbidden_modules"]}


def test_every_module_is_public_or_private() -> None:
    """A new module is private until the architecture page names it."""
    assert public() | private() == modules()
    assert not public() & private()


def test_every_module_has_a_layer_on_the_architecture_page() -> None:
    """The page's table names each module once."""
    rows = table(ROOT / "docs/architecture.md", "Architecture")
    listed = [name.removesuffix("/") for row in rows for name in code(row[1])]
    assert sorted(listed) == sorted(modules())
