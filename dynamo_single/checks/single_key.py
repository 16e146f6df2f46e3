"""E033: a model in a table whose key is ``id`` alone, where each item is a partition by itself, that is no record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from django.core.checks import Error

from dynamo_single.conf import table_settings
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import IdAttribute
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table import names


def check_single_key(model: type[DynamoModel]) -> Iterator[Error]:
    """What is wrong with the primary key of a model in such a table."""
    alias = model._options.alias
    if table_settings(alias).key != "id":
        return
    with suppress(ConfigurationError):  # E003 says so
        if not _is_record(model):
            primary = registry.layout_of(model).primary
            yield Error(
                f"The key of the table {alias!r} is 'id' alone, and the primary key {primary.partition.source!r} / "
                f"{primary.sort.source!r} is not that of a record: no item could be found by a part of it.",
                hint="Derive the model from models.Record, without a primary key of its own and with the id that it "
                "makes; or name another table in Meta.table.",
                obj=model,
                id="dynamo_single.E033",
            )


def _is_record(model: type[DynamoModel]) -> bool:
    """Whether an item's identifier alone says its whole key, as ``table/single_key`` writes it."""
    primary = registry.layout_of(model).primary
    identifier = registry.attributes_of(model).get("id")
    return (
        isinstance(identifier, IdAttribute)
        and identifier.attr_name == names.ID
        and primary.sharding is None
        and primary.partition.source == "{id}"
        and primary.sort.source == f"#{identifier.prefix.upper()}"
        and bool(identifier.prefix)
    )
