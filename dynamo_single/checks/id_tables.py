"""E033: a model that is not a record, in a table whose key is only ``id``. Every item there is a separate partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from django.core.checks import Error

from dynamo_single.conf import table_settings
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.model.bases import is_by_id, prefix_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel


def check_single_key(model: type[DynamoModel]) -> Iterator[Error]:
    """Yield E033 for a primary key that does not fit such a table."""
    alias = model._options.alias
    if table_settings(alias).key != "id":
        return
    with suppress(ConfigurationError):  # reported by E003
        if not is_by_id(model):
            primary = registry.layout_of(model).primary
            yield Error(
                f"The key of the table {alias!r} is 'id' alone, and the primary key {primary.partition.source!r} / "
                f"{primary.sort.source!r} is not that of a record: no item could be found by a part of it.",
                hint="Derive the model from models.Record, without a primary key of its own and with the id that it "
                "makes; or name another table in Meta.table.",
                obj=model,
                id="dynamo_single.E033",
            )
        elif not prefix_of(model) and (others := _conflicting_records(model)):
            yield Error(
                f"{model._meta.label} and {', '.join(others)} have id_prefix = '' in the table {alias!r}, whose key is "
                "'id' alone: an identifier would not tell whose item it is.",
                hint="Give all but one of them an id_prefix, or another table in Meta.table.",
                obj=model,
                id="dynamo_single.E033",
            )


def _conflicting_records(model: type[DynamoModel]) -> list[str]:
    """Return the other records of the table that accept identifiers of any form, if the model does too."""
    return [
        each._meta.label
        for each in registry.all_models()
        if each is not model and each._options.alias == model._options.alias and is_by_id(each) and not prefix_of(each)
    ]
