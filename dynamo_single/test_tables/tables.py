"""The test tables of a run: created on a running local engine or on a new one, and removed at the end.

Each table of ``DYNAMO_SINGLE`` gets a test table ``test_<name>_<worker>_run<id>``, so that two simultaneous runs do not
share a table. With ``--keepdb`` the name does not contain the run. Tables that are not on this machine are never used:
their test tables are created on a local engine.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from msgspec.structs import replace

from dynamo_single.conf import TableSettings, aliases, engine_setting, table_settings
from dynamo_single.engines import LocalEngine, answers, find_engine
from dynamo_single.exceptions import TableNotFound
from dynamo_single.table import redirects, schema
from dynamo_single.table.redirects import Place
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table, table_at, use_test_tables
from dynamo_single.test_tables import contents, guard, run_locks, write_record
from dynamo_single.test_tables.contents import Contents

PREFIX: Final = "test_"
#: The most characters of a table's name in a test table's name: DynamoDB allows 255 (AWS API reference, CreateTable).
_LONGEST_NAME: Final = 200

#: The contents of all test tables.
Snapshot = Mapping[Place, Contents]


class _Run:
    """The engine and the test tables that this process has set up."""

    def __init__(self) -> None:
        self.engine: LocalEngine | None = None
        self.bases: dict[TableSettings, TableSettings] = {}
        #: The contents of the test tables except for recorded writes; ``None`` if only a Scan can tell.
        self.known: Snapshot | None = None


_run: Final = _Run()


def are_in_use() -> bool:
    """Return whether test tables replace the tables of the settings."""
    return bool(redirects.state.stand_ins)


def create_tables(*, suffix: str = "", keep: bool = False, verbosity: int = 1) -> None:
    """Create an empty test table for each table of the settings, and use them from now on.

    First removes tables on the same engines that interrupted runs left. With ``keep``, it empties the tables of an
    earlier run with ``keep`` and updates them to the settings.
    """
    _run.bases = _test_tables(suffix if keep else run_locks.run_suffix(suffix))
    for endpoint in dict.fromkeys(base.endpoint_url for base in _run.bases.values()):
        _remove_leftovers(endpoint, verbosity)
    for base in _run.bases.values():
        table = table_at(base)
        _prepare(table, keep=keep)
        contents.restore(table, {})
        if verbosity >= 1:
            _say(f"Test table {base.table_name!r} at {base.place}{_engine_text(base)}.")
    _use(_run.bases)
    _run.known = {}


def clone_tables(suffix: str, *, keep: bool = False) -> None:
    """Copy each test table with its contents for a parallel process."""
    for base in _run.bases.values():
        table = table_at(_with_suffix(base, suffix))
        _prepare(table, keep=keep)
        contents.restore(table, contents.read(table_at(base)))


def use_clone(suffix: str) -> None:
    """Use the copies that the parent of a parallel process created. The process may be forked or spawned."""
    declared = {settings: redirects.stand_in_for(settings) for settings in _declared()}
    _use({settings: _with_suffix(base, suffix) for settings, base in declared.items()})


def remove_tables(suffix: str = "") -> None:
    """Delete the test tables, or the copies of a parallel process."""
    for base in _run.bases.values():
        _delete(table_at(_with_suffix(base, suffix) if suffix else base))


def use_settings_tables() -> None:
    """Use the tables of the settings again, and stop the engine that was started."""
    guard.stop()
    use_test_tables({})
    contents.stop()
    run_locks.end()
    _run.bases, _run.known = {}, None
    if _run.engine is not None:
        _run.engine.stop()
        _run.engine = None


def snapshot() -> Snapshot:
    """Return the contents of the test tables. Sends a Scan of each if anything was written since the last one."""
    if _run.known is None or not write_record.is_empty():
        write_record.take_keys()  # first: writes of other threads during the Scan are recorded for the next time
        _run.known = {place: contents.read(table) for place, table in _tables()}
    return _run.known


def restore(wanted: Snapshot, *, look: bool = False) -> None:
    """Make the test tables contain exactly these items.

    Writes the recorded items, and items in which ``wanted`` differs from the known contents, in batches of 25. With
    ``look``, or if another writer is possible (a started process, another client, or a request without keys), it first
    sends a Scan of each table and writes the differences.
    """
    known, _run.known = _run.known, None
    written = write_record.take_keys()
    with write_record.paused():
        for place, table in _tables():
            after = wanted.get(place, {})
            if look or known is None or not write_record.is_complete():
                contents.restore(table, after)
            else:
                keys = written.get(place.name, set()) | _changed(known.get(place, {}), after)
                contents.put_back(table, after, keys)
    _run.known = wanted


def _changed(before: Contents, after: Contents) -> set[tuple[str, str]]:
    if before is after:
        return set()
    keys = before.keys() | after.keys()
    return {key for key in keys if before.get(key) is not after.get(key) and before.get(key) != after.get(key)}


def as_text() -> str:
    """Return the contents as text, in the order of the settings, since a parallel process has other table names."""
    return json.dumps([contents.as_text(contents.read(table)) for _, table in _tables()])


def from_text(text: str) -> None:
    """Restore the contents of the test tables from a text."""
    for (_, table), items in zip(_tables(), json.loads(text), strict=True):
        contents.restore(table, contents.from_text(items))


def _use(stand_ins: Mapping[TableSettings, TableSettings]) -> None:
    use_test_tables(stand_ins)
    _run.known = None
    guard.start()
    contents.start()


def _tables() -> Iterator[tuple[Place, Table]]:
    for place in dict.fromkeys(redirects.state.stand_ins.values()):
        yield place, table_at(place.settings(TableSettings("tests", place.name)))


def _declared() -> list[TableSettings]:
    return [table_settings(alias) for alias in aliases()]


def _test_tables(suffix: str) -> dict[TableSettings, TableSettings]:
    """Return the test table of each table. Two aliases of one table share it; two tables never do."""
    known: dict[Place, Place] = {}
    found = {}
    for declared in _declared():
        if (own := Place.of(declared)) not in known:
            place = replace(own, endpoint_url=_endpoint(declared), name=_name(declared.table_name, suffix))
            if place in known.values():
                place = replace(place, name=_name(f"{declared.table_name}_{declared.alias}", suffix))
            known[own] = place
        found[declared] = known[own].settings(declared)
    return found


def _name(name: str, suffix: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9_.-]", "-", "_".join(filter(None, (name[:_LONGEST_NAME], suffix))))
    return f"{PREFIX}{safe}"


def _with_suffix(base: TableSettings, suffix: str) -> TableSettings:
    return replace(base, table_name=f"{base.table_name}_{suffix}")


def _endpoint(settings: TableSettings) -> str:
    """Return the settings' local engine if it runs; otherwise the engine of this run."""
    parts = urlsplit(settings.endpoint_url or "")
    if settings.is_local and answers(parts.port or (443 if parts.scheme == "https" else 80), parts.hostname or ""):
        return str(settings.endpoint_url)
    if _run.engine is None:
        root = Path(getattr(django_settings, "BASE_DIR", Path.cwd()))
        _run.engine = LocalEngine(find_engine(root, engine_setting())).start()
    return _run.engine.endpoint_url


def _prepare(table: Table, *, keep: bool) -> None:
    if not keep:
        _delete(table)
    with guard.without_guard():
        schema.apply(schema.as_owned(table))


def _delete(table: Table) -> None:
    if not (table.settings.is_local and table.name.startswith(PREFIX)):
        raise AssertionError(f"{table.name!r} at {table.settings.place} is no test table.")
    with guard.without_guard(), suppress(TableNotFound):
        table.send(Request("DeleteTable"))


def _remove_leftovers(endpoint: str | None, verbosity: int) -> None:
    """Delete the test tables of runs that ended without removing them.

    Sends a ListTables for each 100 names, and a DescribeTable for each table of a run without a lock file here.
    """
    any_base = next(base for base in _run.bases.values() if base.endpoint_url == endpoint)
    with guard.without_guard():
        for name in _names_of_tables(table_at(any_base)):
            left = table_at(replace(any_base, table_name=name))
            if run_locks.is_left_over(name, partial(_created, left)):
                _delete(left)
                if verbosity >= 1:
                    _say(f"Removed the test table {name!r} of a run that was interrupted.")


def _names_of_tables(table: Table) -> Iterator[str]:
    start: dict[str, str] = {}
    while True:
        answer = table.send(Request("ListTables", {"Limit": 100, **start}))
        yield from answer["TableNames"]
        if not (last := answer.get("LastEvaluatedTableName")):
            return
        start = {"ExclusiveStartTableName": last}


def _created(table: Table) -> float:
    found = table.send(Request("DescribeTable"))["Table"]["CreationDateTime"]
    return found.timestamp() if isinstance(found, datetime) else float(found)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _engine_text(base: TableSettings) -> str:
    started = _run.engine is not None and _run.engine.endpoint_url == base.endpoint_url
    return ", an engine in memory that ends with the tests" if started else ""
