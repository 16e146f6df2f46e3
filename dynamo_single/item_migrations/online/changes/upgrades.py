"""Items of earlier schema versions brought to a later one by the functions of their model."""

from __future__ import annotations

from collections.abc import Callable

from dynamo_single.exceptions import ConfigurationError, InvalidValue, SchemaVersionError
from dynamo_single.item_migrations.online.changes.rewriting import (
    indexes_of,
    pairs_follow_from,
    rewriting,
    with_pairs,
)
from dynamo_single.item_migrations.online.work import Others, Task, below_version
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.orm.requests.actions import Action, Item, of_type
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.upgrades import Schema
from dynamo_single.table import names

_KEY = (names.PARTITION_KEY, names.SORT_KEY)


def upgraded_items(after: Snapshot, schema_of: Callable[[Snapshot], Schema] | None = None) -> Task:
    """Bring every item of an earlier version to that of ``after``, with folded copies and index keys.

    The functions are those that the model has now, and are asked for when there is an item that needs them. The
    condition of the write is the whole item, and that what a function looked for and did not find is missing.
    """
    known = {each.stored for each in after.attributes.values()} | pairs_follow_from(after, indexes_of(after))

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        try:
            found = (schema_of or present_schema)(after).upgraded(item, after.schema_version)
        except SchemaVersionError as error:
            raise InvalidValue(str(error)) from error
        wanted = with_pairs(after, indexes_of(after), found.item)
        return rewriting(item, wanted, {*item, *known, *found.asked}.difference(_KEY))

    return Task(below_version(of_type(after.item_type), after.schema_version), change)


def present_schema(after: Snapshot) -> Schema:
    """The upgrades of the model as it is declared now; raises ``ConfigurationError`` if it has none any more."""
    model = registry.model_of_type(after.alias, after.item_type)
    schema = None if model is None else registry.layout_of(model).schema
    if schema is None or schema.version < after.schema_version or not schema.upgrades:
        raise ConfigurationError(
            f"There are items of type {after.item_type} below schema version {after.schema_version}, and no model has "
            "upgrades that lead there any more. Deploy the code that has them in Meta.upgrades, and finish with it."
        )
    return schema
