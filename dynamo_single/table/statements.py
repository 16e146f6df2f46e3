"""Insert items by BatchExecuteStatement: 25 PartiQL INSERT statements a request.

DynamoDB refuses each statement by itself if its item exists, so the statements of a batch are what conditional PutItems
are. A statement contains names only; all values are parameters. Statements that change or delete items are not used: a
local engine executes them differently from AWS. The module is independent of models and plans.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.multiplestatements.batching.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from dynamo_single.table.names import ID, PARTITION_KEY, SORT_KEY
from dynamo_single.table.request import MAX_STATEMENT, Item

#: One entry of a BatchExecuteStatement.
Statement = dict[str, Any]

_INSERT: Final = re.compile(r"""INSERT INTO "((?:[^"]|"")+)" VALUE \{'(?:(pk)': \?, 'sk'|(id)'): \?[,}]""")


def insert_statement(table_name: str, item: Item) -> Statement | None:
    """Return the statement that inserts an item, as it is stored; ``None`` if it is longer than 8,192 characters."""
    if ID in item and PARTITION_KEY not in item:
        first: tuple[str, ...] = (ID,)
    else:
        first = (PARTITION_KEY, SORT_KEY)
    names = (*item,)
    if names[: len(first)] != first:
        names = (*first, *(name for name in names if name not in first))
        item = {name: item[name] for name in names}
    text = _text(table_name, names)
    return None if len(text) > MAX_STATEMENT else {"Statement": text, "Parameters": [*item.values()]}


@lru_cache(maxsize=256)
def _text(table_name: str, names: tuple[str, ...]) -> str:
    quoted = (name.replace("'", "''") for name in names)
    table = table_name.replace('"', '""')
    return f'INSERT INTO "{table}" VALUE {{' + ", ".join(f"'{name}': ?" for name in quoted) + "}"


def inserted_key(statement: Mapping[str, Any]) -> tuple[str, Item] | None:
    """Return the table and the stored key of an item that ``insert_statement()`` inserts; ``None`` for others."""
    found = _INSERT.match(statement["Statement"])
    if found is None:
        return None
    names = (ID,) if found[3] else (PARTITION_KEY, SORT_KEY)
    return found[1].replace('""', '"'), dict(zip(names, statement.get("Parameters", ()), strict=False))
