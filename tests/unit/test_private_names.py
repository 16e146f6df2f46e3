"""Private names of Django and PynamoDB in the code are listed on a page, and exist in the installed versions."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import django
import pytest
from django.contrib.contenttypes.models import ContentType
from django.db.migrations.state import ProjectState
from django.db.models import Count, QuerySet
from django.db.models.base import ModelState
from django.db.models.fields import CharField
from django.db.models.options import Options
from django.db.models.query import QuerySet as DjangoQuerySet
from django.db.models.sql import Query

from tests.docs.pages import ROOT, code, table
from tests.unit import foreign_names
from tests.unit.private_names import ALL

PAGE = ROOT / "docs/private-names.md"
HEADING = "Names"

#: For attributes that objects get at run time: an example object.
MADE: dict[Any, Any] = {
    QuerySet: DjangoQuerySet(ContentType),
    Query: DjangoQuerySet(ContentType).query,
    type(DjangoQuerySet(ContentType).query.where): DjangoQuerySet(ContentType).query.where,
    Count: Count("pk"),
    ModelState: ModelState(),
    ProjectState: ProjectState(),
    Options: ContentType._meta,
    CharField: CharField(),
}
#: PynamoDB's argument of ``save()`` and ``delete()``, which they ignore: ``VersionAttribute`` is always checked.
NOT_TAKEN = {"add_version_condition"}


def rows() -> Iterator[tuple[list[str], list[str], str]]:
    """The names, the files or folders, and the guarding test of each row of the page."""
    for names, places, test in table(PAGE, HEADING):
        yield code(names), code(places), code(test)[0]


def found(path: str) -> Any:
    """Return the object of a dotted path."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value if hasattr(value, part) else made(value), part)
        return value
    raise AssertionError(f"{path} leads to nothing")


def made(cls: Any) -> Any:
    """An object of a class."""
    return next((instance for known, instance in MADE.items() if inspect.isclass(cls) and issubclass(known, cls)), cls)


def missing(name: str) -> str:
    """Return the missing part of a name, or its wrong arguments; empty if it is right."""
    release, target = re.fullmatch(r"(?:([<>=]+\d+) )?(.*)", ALL[name]).groups()  # type: ignore[union-attr]  # matches
    if release is not None and (release[0] == "<") != (django.VERSION[0] < int(release.strip("<>="))):
        return ""  # another release has it
    if ": " in target:
        module, word = target.split(": ")
        source = Path(importlib.import_module(module).__file__ or "").read_text(encoding="utf-8")
        return "" if re.search(rf"\b{word}\b", source) else f"{module} has no {word}"
    path, _, arguments = target.partition("(")
    try:
        value = found(path)
        if arguments:
            given = [each.strip() for each in arguments.rstrip(")").split(",") if each.strip()]
            by_name = {each.rstrip("="): None for each in given if each.endswith("=")}
            inspect.signature(value).bind(*(each for each in given if not each.endswith("=")), **by_name)
    except (AssertionError, AttributeError, TypeError, ValueError) as error:
        return f"{target}: {type(error).__name__}: {error}"
    return ""


def test_the_installed_libraries_have_the_names() -> None:
    """Each name is there, and takes the arguments that the code gives it."""
    assert {name: said for name in ALL if (said := missing(name))} == {}


def test_the_page_lists_the_same_names() -> None:
    """The page's table and the targets here have the same names, each once."""
    listed = [name for names, _, _ in rows() for name in names]
    assert sorted(listed) == sorted(ALL)


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row[0][0])
def test_a_row_says_where_and_what_guards(row: tuple[list[str], list[str], str]) -> None:
    """Each name occurs in one of the row's places, each place has one of the names, and the test exists."""
    names, places, test = row
    words = {name: re.compile(rf"\b{name.split('.')[-1]}\b") for name in names}
    texts = {place: text(place) for place in places}
    assert [name for name, word in words.items() if not any(map(word.search, texts.values()))] == []
    assert [place for place, text in texts.items() if not any(word.search(text) for word in words.values())] == []
    assert (ROOT / "tests" / f"{test}.py").is_file()


@cache
def text(place: str) -> str:
    """The code of a place."""
    return "\n".join(path.read_text() for path in files(place))


def files(place: str) -> list[Path]:
    """Return the files of a place: one file, or those of a folder."""
    path = ROOT / "dynamo_single" / place
    return [path.with_suffix(".py")] if path.with_suffix(".py").is_file() else [*path.rglob("*.py")]


@pytest.mark.parametrize("search", [foreign_names.found, foreign_names.undocumented_imports])
def test_no_name_is_missing_on_the_page(search: Any) -> None:
    """The page lists each name that ``foreign_names`` finds, with its place."""
    listed: dict[str, list[str]] = {}
    for names, places, _ in rows():
        for name in names:
            listed.setdefault(name.split(".")[-1], []).extend(places)
    missing = {
        f"{name} in {file}"
        for name, used_in in search().items()
        for file in used_in
        if not any(f"{file}/".startswith(f"{place}/") for place in listed.get(name, ()))
    }
    assert missing == set()


def overridden() -> Iterator[tuple[str, Any, Any]]:
    """Yield each of our methods that Django or PynamoDB calls instead of theirs: its name and both methods."""
    seen = set()
    for cls in foreign_names.classes():
        for place, ours in enumerate(cls.__mro__):
            if ours.__module__.split(".")[0] not in foreign_names.PACKAGES:
                continue
            for name, method in vars(ours).items():
                base = next((each for each in cls.__mro__[place:] if foreign_names.is_theirs(each, name)), None)
                if base is not None and inspect.isfunction(method) and (ours, name) not in seen:
                    seen.add((ours, name))
                    yield f"{ours.__module__}.{ours.__qualname__}.{name}", method, vars(base)[name]


def not_taken(ours: Any, theirs: Any) -> set[str]:
    """The parameters of a method of theirs that ours does not take."""
    own = inspect.signature(ours).parameters.values()
    if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} & {each.kind for each in own}:
        return set()
    asked = [name for name in inspect.signature(theirs).parameters if name not in ("self", "cls", "kwargs", "args")]
    return set(asked) - {each.name for each in own} - NOT_TAKEN


def test_an_overridden_method_takes_what_theirs_takes() -> None:
    """Our method accepts a parameter that a release adds to theirs."""
    methods = list(overridden())
    assert len(methods) > 300
    assert {name: refused for name, ours, theirs in methods if (refused := not_taken(ours, theirs))} == {}
