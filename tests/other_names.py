"""``TEST_NAMES`` runs the tests on tables with other names: ``other``, or ``untyped`` for items without a type.

Each test table without its own shape gets the names ``PK``, ``SK``, ``GS1PK``, ``GS1SK``, ``_type`` and ``ttl``.
Requests are translated below listeners and interceptors, so that tests see the app's own names, as do messages about
keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import pytest
from msgspec.structs import replace

from dynamo_single import conf
from dynamo_single.conf.shapes import DEFAULT_INDEXES, OWN
from dynamo_single.table import shown_keys, transport
from dynamo_single.table import table as tables
from dynamo_single.table.request import inserted_item

VARIABLE: Final = "TEST_NAMES"
#: The names of the tables; empty for the app's own.
NAMES: Final = os.environ.get(VARIABLE, "")
#: For a test of the app's own names; other programs may set the time of a deletion, so queries filter by it.
own_names = pytest.mark.skipif(bool(NAMES), reason="the table has other names")
#: For a test of an item whose type differs from its key's; without types, only the key determines the model.
typed = pytest.mark.skipif(NAMES == "untyped", reason="items have no type")
_SHAPE: Final = frozenset(
    {"KEY", "PARTITION_KEY", "SORT_KEY", "TYPE_ATTRIBUTE", "TTL_ATTRIBUTE", "RAW_KEYS", "FOREIGN"}
)
_installed: Final[set[str]] = set()


def install() -> None:
    """Give the tables of this process other names, if the environment variable names them."""
    if not NAMES or _installed:
        return
    _installed.add(NAMES)
    parse = conf._from_options
    conf._from_options = lambda alias, options: parse(alias, _named(options))
    tables.transport.send = partial(_translated, transport.send)
    shown_keys.table_settings = lambda alias: replace(conf.table_settings(alias), shape=OWN)  # type: ignore[assignment]
    tables.ShapedTable, tables._tables = _InnerTable, {}  # type: ignore[misc,assignment]


class _InnerTable(tables.ShapedTable):
    """Send requests with the app's own names to ``_translated()``, except for tables whose ``KEY`` is ``id``."""

    def __init__(self, settings: conf.TableSettings) -> None:
        super().__init__(settings)
        if not settings.shape.by_prefix:
            del tables._shaped[settings.table_name]  # listeners get requests with the app's own names

    def insert_statement(self, item: Any) -> Any:
        if self.settings.shape.by_prefix:
            return super().insert_statement(item)
        return tables.Table.insert_statement(self, item)

    async def _call(self, *arguments: Any) -> Any:
        if self.settings.shape.by_prefix:
            return await super()._call(*arguments)
        return await tables.Table._call(self, *arguments)


async def _translated(
    send: Any, settings: conf.TableSettings, operation: str, params: Any, decoder: Any, lease: Any, head: Any
) -> Any:
    if settings.shape.is_own or settings.shape.by_prefix:
        return await send(settings, operation, params, decoder, lease, head)
    table = tables.table_at(settings)
    if not isinstance(table, _InnerTable):
        return await send(settings, operation, params, decoder, lease, head)
    translator = table.translator
    if decoder is not None and translator.types_of(operation, params):
        decoder = None
    sent, written = translator.request(operation, params)
    if operation == "BatchExecuteStatement":
        written = {**params, "Statements": [_statement(table, each) for each in params["Statements"]]}
    try:
        answer = await send(settings, sent, written, decoder, lease, head)
    except transport.FAILURES as error:
        transport.translate(error, partial(translator.response, operation, params))
        raise
    return translator.response(operation, params, answer)


def _statement(table: tables.ShapedTable, statement: Any) -> Any:
    found = inserted_item(statement)
    if found is None:
        return statement
    keys = tuple(key.name for key in table.settings.shape.keys)
    return tables.insert_statement(table.name, table.translator.written(found[1]), keys)


def _named(options: Mapping[str, object]) -> Mapping[str, object]:
    """The settings of a table with other names, unless they declare a shape."""
    indexes = options.get("INDEXES", DEFAULT_INDEXES)
    if _SHAPE & options.keys() or not isinstance(indexes, list | tuple) or not all(map(_is_name, indexes)):
        return options
    named = {
        name: {"name": f"{name}-index", "partition": f"{name.upper()}PK", "sort": f"{name.upper()}SK"}
        for name in indexes
    }
    return {
        **options,
        "INDEXES": named,
        "PARTITION_KEY": "PK",
        "SORT_KEY": "SK",
        "TYPE_ATTRIBUTE": None if NAMES == "untyped" else "_type",
        "TTL_ATTRIBUTE": "ttl",
    }


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and len(name) > 2
