"""Estimate the requests and write units of an import from the first rows of each table."""

from __future__ import annotations

import math
from typing import Any, Final

from msgspec import Struct

from dynamo_single.contrib.sql_import.mapping import Import
from dynamo_single.contrib.sql_import.rows import Converter, Row
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.effects import counters
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.derived import Version, derived_items
from dynamo_single.orm.effects.unique_claims import claims_of
from dynamo_single.orm.items.encode import item_from
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CopiedAttribute, UnicodeAttribute
from dynamo_single.orm.schema.bindings import binding_of
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.orm.write import bulk_insert
from dynamo_single.table import names
from dynamo_single.table.request import MAX_ACTIONS, MAX_BATCH_KEYS, MAX_STATEMENTS
from dynamo_single.table.table import get_table

#: The number of rows in a sample.
SAMPLE: Final = 100
#: The bytes of a write unit (AWS developer guide, "DynamoDB provisioned capacity mode").
_UNIT: Final = 1024


class Estimate(Struct, frozen=True):
    """The number of rows of a table, with the requests and write units of their import if all are new.

    A stored row takes only a part of a BatchGetItem.
    """

    rows: int
    requests: int
    write_units: int


def estimate(each: Import, converter: Converter) -> Estimate:
    """Return the estimate; sends two SQL queries and no requests."""
    rows = each.source.count()
    sample = [
        found
        for row in converter.rows(each, next(each.source.pages(SAMPLE), []))
        if row.outcome is None and (found := _of_row(each.model, row)) is not None
    ]
    units = sum(found[0] for found in sample) / len(sample) if sample else 0
    actions = sum(found[1] for found in sample) / len(sample) if sample else 1
    binding = binding_of(each.model)
    if bulk_insert.is_inserted(binding):
        writes = rows / MAX_STATEMENTS
    else:
        writes = rows * actions / MAX_ACTIONS if _is_transaction(each.model) else rows
    return Estimate(rows, math.ceil(rows / MAX_BATCH_KEYS) + math.ceil(writes), math.ceil(rows * units))


def _is_transaction(model: Any) -> bool:
    return any(not isinstance(effect, Version) for effect in effects_of(binding_of(model)))


def _stand_in(copy: CopiedAttribute) -> str | None:
    """Return a value of the usual length for a copy whose source is not known yet."""
    return "x" * 12 if isinstance(copy.source, UnicodeAttribute) else None


def _of_row(model: Any, row: Row) -> tuple[int, int] | None:
    """Return the write units and the actions of one row; ``None`` if its item is invalid."""
    try:
        copied = {copy.name: _stand_in(copy) for copy in registry.copied_of(model)}
        values = form_of(binding_of(model)).prepared(row.obj.__dict__, None, without=copied)
        item = item_from(model, {**copied, **values})
        others = len(claims_of(model, item)) + len(derived_items(model, item))
        others += len({key for _, key in counters.counting_parents(model, item)})
    except DynamoSingleError:
        return None
    own = math.ceil(item_size(item) / _UNIT)
    indexes = sum(names.key_names(index)[0] in item for index in get_table(model._options.alias).settings.indexes)
    # A transaction takes two units for each unit of its items, and an index one (AWS developer guide, "Amazon DynamoDB
    # Transactions: How it works" and "Provisioned throughput considerations for Global Secondary Indexes").
    factor = 2 if _is_transaction(model) else 1
    return factor * (own + others) + own * indexes, 1 + others
