"""The record of applied migrations: items of the default table for migrations of items, otherwise the files.

A migration of an app without operations on items counts as applied as soon as it is on disk, unless it depends on an
app that has such operations and is therefore applied after it. This module must not depend on querysets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.migrations.loader import MigrationLoader
from django.utils.dateparse import parse_datetime

from dynamo_single import clock
from dynamo_single.exceptions import TableNotFound
from dynamo_single.table import names
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table

#: An app's label and the name of one of its migrations.
Name = tuple[str, str]

_PREFIX = "APPLIED#"


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The migrations on disk and those that they replace: those that the table records, and the others."""

    recorded: frozenset[Name]
    others: frozenset[Name]


#: The migrations on disk, read once within a ``reading_files_once()`` block.
_found: ContextVar[list[_Kinds] | None] = ContextVar("dynamo_single_migration_files", default=None)


@contextmanager
def reading_files_once() -> Iterator[None]:
    """Read the migration files only once within the block, in which no file may change.

    ``migrate`` needs them several times, and again for each migration that it applies.
    """
    token = _found.set([])
    try:
        yield
    finally:
        _found.reset(token)


def applied() -> dict[Name, datetime]:
    """Return the applied migrations with their times: a strongly consistent Query, or none without such operations.

    A page contains about 8,000 records.
    """
    kinds = _kinds()
    known = recorded() if kinds.recorded else {}
    now = clock.now()
    return known | dict.fromkeys(kinds.others - known.keys(), now)


def rows() -> list[Mapping[str, Any]]:
    """Return the applied migrations as rows of Django's own record, in the order of their names."""
    known = enumerate(sorted(applied().items()), start=1)
    return [{"id": number, "app": app, "name": name, "applied": since} for number, ((app, name), since) in known]


def is_kept(name: Name) -> bool:
    """Return whether the table records a migration: its app, or one it depends on, has operations on items.

    This includes a migration that is in the table although its file is gone. May send a Query.
    """
    kept = _kinds().recorded
    return name in kept or (bool(kept) and name in recorded())


def _kinds() -> _Kinds:
    found = _found.get()
    if found is None:
        return _read_kinds()
    if not found:
        found.append(_read_kinds())
    return found[0]


def _read_kinds() -> _Kinds:
    on_disk = _on_disk()
    apps = {app for (app, _), migration in on_disk.items() if has_items_to_change(migration)}
    everything = {*on_disk, *(key for migration in on_disk.values() for key in migration.replaces)}
    kept = {key for key in everything if key[0] in apps} | (_depending_on(apps) if apps else set())
    return _Kinds(frozenset(kept), frozenset(everything - kept))


def recorded() -> dict[Name, datetime]:
    """Return the records in the table: one Query. Empty if there is no table yet."""
    found: dict[Name, datetime] = {}
    params: dict[str, Any] = {
        "KeyConditionExpression": "#p = :p AND begins_with(#s, :s)",
        "ExpressionAttributeNames": {"#p": names.PARTITION_KEY, "#s": names.SORT_KEY},
        "ExpressionAttributeValues": {":p": {"S": _partition()}, ":s": {"S": _PREFIX}},
        "ConsistentRead": True,
    }
    try:
        for answer in get_table(DEFAULT_DB_ALIAS).pages(Request("Query", params)):
            for item in answer["Items"]:
                app, _, name = item[names.SORT_KEY]["S"].removeprefix(_PREFIX).partition("#")
                found[app, name] = parse_datetime(item[names.APPLIED_AT]["S"]) or clock.now()
    except TableNotFound:
        return {}
    return found


def recorded_if_any() -> dict[Name, datetime]:
    """Return the records in the table. Sends a Query only if an app has operations on items."""
    return recorded() if _kinds().recorded else {}


def record(name: Name, moment: datetime) -> None:
    """Record a migration as applied: one PutItem."""
    item = {
        **_key(name),
        names.ITEM_TYPE: {"S": names.MIGRATION_ITEM_TYPE},
        names.APPLIED_AT: {"S": clock.in_utc(moment).isoformat()},
    }
    get_table(DEFAULT_DB_ALIAS).send(Request("PutItem", {"Item": item}))


def forget(found: Iterable[Name]) -> int:
    """Delete the records of migrations: one DeleteItem each. Return their number."""
    count = 0
    for name in found:
        get_table(DEFAULT_DB_ALIAS).send(Request("DeleteItem", {"Key": _key(name)}))
        count += 1
    return count


def _key(name: Name) -> dict[str, dict[str, str]]:
    return {names.PARTITION_KEY: {"S": _partition()}, names.SORT_KEY: {"S": f"{_PREFIX}{name[0]}#{name[1]}"}}


def _partition() -> str:
    return f"{get_table(DEFAULT_DB_ALIAS).settings.own_prefix}{names.MIGRATIONS}"


def has_items_to_change(migration: Any) -> bool:
    """Return whether a migration has operations on items."""
    return any(getattr(operation, "changes_items", False) for operation in migration.operations)


def _on_disk() -> Mapping[Name, Any]:
    """Return every migration that has a file."""
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    return loader.disk_migrations


def _depending_on(apps: set[str]) -> set[Name]:
    """Return migrations of other apps that must be applied after some of these apps, and those that they replace."""
    graph = MigrationLoader(None, ignore_no_migrations=True).graph
    found = {key for key in graph.nodes if any(app in apps for app, _ in graph.forwards_plan(key))}
    return found | {replaced for key in found for replaced in graph.nodes[key].replaces}
