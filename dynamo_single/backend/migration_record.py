"""The record of applied migrations: items of the default table for what has to do with items, and else the files.

A migration of an app without operations on items has nothing to do here, and counts as applied as soon as it is on
disk; unless it depends on one of an app that has some, which would be applied after it. This module must not know
querysets.
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
    """The migrations on disk, with what they replace: those that the table records, and the others."""

    recorded: frozenset[Name]
    others: frozenset[Name]


#: What the files say, found once for a block of ``reading_files_once``.
_found: ContextVar[list[_Kinds] | None] = ContextVar("dynamo_single_migration_files", default=None)


@contextmanager
def reading_files_once() -> Iterator[None]:
    """Within the block no migration's file comes, changes or goes: they are read for the first question only.

    ``migrate`` asks several times, and again for each migration that it applies.
    """
    token = _found.set([])
    try:
        yield
    finally:
        _found.reset(token)


def applied() -> dict[Name, datetime]:
    """What counts as applied, and since when: a strongly consistent Query, or nothing if no app has such operations.

    A page holds about 8,000 records.
    """
    kinds = _kinds()
    known = recorded() if kinds.recorded else {}
    now = clock.now()
    return known | dict.fromkeys(kinds.others - known.keys(), now)


def is_kept(name: Name) -> bool:
    """Whether the table records a migration: it is of an app with operations on items, or depends on one.

    So is one that is in the table still, and whose file is gone. May send a Query.
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
    apps = {app for (app, _), migration in on_disk.items() if any(map(_changes_items, migration.operations))}
    everything = {*on_disk, *(key for migration in on_disk.values() for key in migration.replaces)}
    kept = {key for key in everything if key[0] in apps} | (_depending_on(apps) if apps else set())
    return _Kinds(frozenset(kept), frozenset(everything - kept))


def recorded() -> dict[Name, datetime]:
    """The records in the table; none if there is no table yet."""
    found: dict[Name, datetime] = {}
    params: dict[str, Any] = {
        "KeyConditionExpression": "#p = :p AND begins_with(#s, :s)",
        "ExpressionAttributeNames": {"#p": names.PARTITION_KEY, "#s": names.SORT_KEY},
        "ExpressionAttributeValues": {":p": {"S": names.MIGRATIONS}, ":s": {"S": _PREFIX}},
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
    """The records in the table, which is asked only if an app has operations on items."""
    return recorded() if _kinds().recorded else {}


def record(name: Name, moment: datetime) -> None:
    """Note that a migration is applied: one PutItem."""
    item = {
        **_key(name),
        names.ITEM_TYPE: {"S": names.MIGRATION_ITEM_TYPE},
        names.APPLIED_AT: {"S": clock.in_utc(moment).isoformat()},
    }
    get_table(DEFAULT_DB_ALIAS).send(Request("PutItem", {"Item": item}))


def forget(found: Iterable[Name]) -> int:
    """Note that migrations are not applied: one DeleteItem for each; gives how many there were."""
    count = 0
    for name in found:
        get_table(DEFAULT_DB_ALIAS).send(Request("DeleteItem", {"Key": _key(name)}))
        count += 1
    return count


def _key(name: Name) -> dict[str, dict[str, str]]:
    return {names.PARTITION_KEY: {"S": names.MIGRATIONS}, names.SORT_KEY: {"S": f"{_PREFIX}{name[0]}#{name[1]}"}}


def _changes_items(operation: object) -> bool:
    return bool(getattr(operation, "changes_items", False))


def _on_disk() -> Mapping[Name, Any]:
    """Every migration there is a file for."""
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    return loader.disk_migrations


def _depending_on(apps: set[str]) -> set[Name]:
    """The migrations of other apps that cannot be applied before some of these apps, and what they replace."""
    graph = MigrationLoader(None, ignore_no_migrations=True).graph
    found = {key for key in graph.nodes if any(app in apps for app, _ in graph.forwards_plan(key))}
    return found | {replaced for key in found for replaced in graph.nodes[key].replaces}
