"""Names of ``dynamo_single`` and ``accounts`` on the pages exist and are public."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.permissions import all_permissions
from tests.docs import pages
from tests.docs.pages import ROOT, Block
from tests.unit.test_public_modules import private
from tests.unit.test_public_names import NAMES

PAGES = pages.pages()
PACKAGES = ("dynamo_single", "accounts")

_DOTTED = re.compile(rf"(?<![\w./])(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
#: The identifier of a check, which the page of checks covers.
_CHECK = re.compile(rf"(?:{'|'.join(PACKAGES)})\.[EW]\d{{3}}")
_LOGGER = re.compile(r'getLogger\("([\w.]+)"\)')


def named(page: Path) -> set[str]:
    """Return the dotted names on a page: in its text and blocks, and in its imports."""
    session: dict[str, str] = {}
    found = set(_DOTTED.findall(page.read_text()))
    for block in pages.blocks(page):
        if block.language == "python":
            # A file has its own imports, and other blocks share those of earlier ones.
            found.update(used(block, {} if block.path else session))
    return {name for name in found if not _CHECK.fullmatch(name)}


def used(block: Block, known: dict[str, str]) -> Iterator[str]:
    """Return the package names in a block; ``known`` contains imported names, and gets this block's."""
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in PACKAGES:
            known.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for each in node.names:
                known.pop(each.asname or each.name.partition(".")[0], None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            yield f"{known[node.value.id]}.{node.attr}"


def mistake(name: str) -> str:
    """Return the problem of a dotted name; empty if it exists and is public."""
    parts = name.split(".")
    inside = [".".join(parts[1:length]) for length in (2, 3)] if parts[0] == "dynamo_single" else []
    if not private().isdisjoint(inside) or any(part.startswith("_") for part in parts):
        return f"{name} is private"
    if name in loggers() | telemetry() or is_model(name) or name in all_permissions():
        return ""
    try:
        module, rest = split(name)
        found: Any = import_module(module)
        for part in rest:
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        # If it is a package that only projects install, tests/packages imports the module.
        return f"{name}: {error}" if (error.name or "").partition(".")[0] in PACKAGES else ""
    except ConfigurationError:
        # Django has tasks since 6.0.
        listed = {f"{module}.{each}." for module in NAMES for each in NAMES[module].split() if ".tasks." in module}
        return "" if any(each.startswith(f"{name}.") for each in listed) else f"{name} is not among the public names"
    except AttributeError as error:
        return f"{name}: {error}"
    return "" if parts[0] != "dynamo_single" or is_listed(module, rest) else f"{name} is not among the public names"


def split(name: str) -> tuple[str, list[str]]:
    """Return the module of a dotted name, and the rest."""
    parts = name.split(".")
    length = 1
    while length < len(parts) and is_module(parts[: length + 1]):
        length += 1
    return ".".join(parts[:length]), parts[length:]


def is_module(parts: list[str]) -> bool:
    """Return whether the module exists; its parent is known to be one."""
    above = import_module(".".join(parts[:-1]))
    return hasattr(above, "__path__") and find_spec(".".join(parts)) is not None


def is_listed(module: str, rest: list[str]) -> bool:
    """Return whether the list of public names has it; top-level modules and packages of listed ones are public."""
    if not rest:
        return module.count(".") == 1 or any(f"{name}.".startswith(f"{module}.") for name in NAMES)
    return rest[0] in NAMES.get(module, "").split()


def is_model(name: str) -> bool:
    """Return whether it is a model's label, as in settings."""
    label, _, model = name.partition(".")
    return model.lower() in apps.all_models[label]


@cache
def loggers() -> set[str]:
    """The names of loggers, which look like modules."""
    sources = (path.read_text() for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {name for source in sources for name in _LOGGER.findall(source)}


@cache
def telemetry() -> set[str]:
    """The names of attributes and metrics of OpenTelemetry, which look like modules."""
    source = (ROOT / "dynamo_single/contrib/observability/telemetry.py").read_text()
    return {*re.findall(r'"(dynamo_single\.\w+)"', source)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_what_is_there_and_public(page: Path) -> None:
    """Every full name and import on a page works, and is public."""
    assert [wrong for name in sorted(named(page)) if (wrong := mistake(name))] == []


def test_the_pages_name_something() -> None:
    """The pages name most public modules."""
    found = {".".join(name.split(".")[:2]) for page in PAGES for name in named(page)}
    assert len(found & {".".join(module.split(".")[:2]) for module in NAMES}) > 15


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The class `dynamo_single.models.Key`, see.", {"dynamo_single.models.Key"}),
        ("`dynamo_single.E001` and accounts.W001", set()),
        (
            "```python\nfrom dynamo_single import models as m\n\nm.Key\n```",
            {"dynamo_single.models", "dynamo_single.models.Key"},
        ),
        (
            "```python\nfrom dynamo_single import models\n```\n\n```python\nmodels.Key\n```",
            {"dynamo_single.models", "dynamo_single.models.Key"},
        ),
        (
            "```python\nfrom dynamo_single import models\nfrom django.db import models\n\nmodels.Q\n```",
            {"dynamo_single.models"},
        ),
        ("```text\ndynamo_single.cache.DynamoCache\n```", {"dynamo_single.cache.DynamoCache"}),
        ("templates/dynamo_single/admin.html", set()),
    ],
)
def test_what_a_page_names_is_found(text: str, names: set[str], tmp_path: Path) -> None:
    """In the text, in every kind of block, and after the name that an import gives."""
    page = tmp_path / "page.md"
    page.write_text(text)
    assert named(page) == names


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("dynamo_single.models.Key", ""),
        ("dynamo_single.models", ""),
        ("dynamo_single.backend", ""),
        ("dynamo_single.admin.apps.DynamoAdminConfig", ""),
        ("accounts.User", ""),
        ("accounts.models.User", ""),
        ("dynamo_single.requests", ""),
        ("dynamo_single.orm.requests.actions.Put", "private"),
        ("dynamo_single.checks", "private"),
        ("dynamo_single.conf._READERS", "private"),
        ("dynamo_single.models.Kex", "has no attribute 'Kex'"),
        ("dynamo_single.modells", "has no attribute 'modells'"),
        ("dynamo_single.contrib.accounts.backends.Nobody", "has no attribute 'Nobody'"),
        ("dynamo_single.contrib.doctor.walk", "private"),
        ("dynamo_single.table.errors", "not among the public names"),
        ("dynamo_single.table.table.Table", "not among the public names"),
        ("dynamo_single.sessions.CreateError", "not among the public names"),
    ],
)
def test_a_wrong_name_is_found(name: str, reported: str) -> None:
    """This applies to a missing name, and to a private one."""
    assert reported in mistake(name)
    assert bool(reported) == bool(mistake(name))
