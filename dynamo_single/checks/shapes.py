"""E002 and E047: models of tables with a shape of their own, whose attributes may be keys themselves."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.checks import Error

from dynamo_single.conf import table_settings
from dynamo_single.conf.shapes import Shape
from dynamo_single.orm.schema import recognition, registry
from dynamo_single.orm.schema.keys.stored_keys import is_whole
from dynamo_single.orm.schema.keys.template import Template
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.names import EXPIRES_AT, ITEM_TYPE, key_names


def check_shape(model: type[DynamoModel]) -> Iterator[Error]:
    """E002: an attribute with the name of a key, type or expiry; E047: a key that cannot be removed from an item."""
    shape = table_settings(model._options.alias).shape
    if shape.is_own or shape.by_prefix:
        return
    layout = registry.declared_layout(model)
    yield from _check_names(model, layout, shape)
    yield from _check_fixed(model, layout, shape)
    yield from _check_key_only(model, layout, shape)
    yield from _check_shards(model, layout, shape)


def _check_names(model: type[DynamoModel], layout: ModelLayout, shape: Shape) -> Iterator[Error]:
    templates = _templates(layout, shape)
    for name, attribute in registry.attributes_of(model).items():
        stored = attribute.attr_name
        if what := _taken(stored, shape):
            yield _error(model, "E002", f"{name} would be stored as {stored!r}, the table's attribute of the {what}.")
        for key in templates.get(stored, ()):
            if not (is_whole(key) and key.parts[0].name == name):
                yield _error(
                    model,
                    "E002",
                    f"{name} would be stored as {stored!r}, the attribute that stores the key {key.source!r}.",
                    f'Let the key be the attribute, "{{{name}}}", or give the attribute in_key_only=True.',
                )


def _taken(stored: str, shape: Shape) -> str:
    """Return the use of a name in the table, with a hint, if the app has another name for it."""
    if stored == shape.ttl_attribute != EXPIRES_AT:
        return "expiry: declare a models.TTLAttribute()"
    return "type: leave the attribute out" if stored == shape.type_attribute != ITEM_TYPE else ""


def _templates(layout: ModelLayout, shape: Shape) -> dict[str, list[Template]]:
    """Return the templates of the model's keys by the table's names of the key attributes."""
    found: dict[str, list[Template]] = {}
    keys = dict(zip((key.name for key in shape.keys), (layout.primary.partition, layout.primary.sort), strict=False))
    pairs = [*keys.items()]
    for each in layout.indexes:
        index = shape.index(str(each.index))
        if index is not None:
            pairs += zip((key.name for key in index.keys), (each.partition, each.sort), strict=False)
    for name, template in pairs:
        found.setdefault(name, []).append(template)
    return found


def _check_fixed(model: type[DynamoModel], layout: ModelLayout, shape: Shape) -> Iterator[Error]:
    declared = recognition.model_names(layout.alias).declared | {key.name for key in shape.keys}
    for key in {key.index: key for key in layout.index_keys}.values():
        fixed = sorted({shape.name_of(name) for name in key_names(key.index)} & declared)
        if fixed and (what := _removes(key, layout)):
            yield _error(
                model,
                "E047",
                f"{layout.label}: {what} takes items off the index {key.index!r}, whose key {fixed[0]!r} is an "
                "attribute of a model or of the primary key: its value would be lost.",
                "Use an index whose keys belong to no attribute, such as GSI1PK and GSI1SK.",
            )


def _removes(key: AccessKey, layout: ModelLayout) -> str:
    if key is layout.trash:
        return "the trash"
    if layout.soft_delete and layout.trash is not None and key.index == layout.trash.index:
        return "the trash"
    return "the condition of a key" if key.condition is not None else ""


def _check_key_only(model: type[DynamoModel], layout: ModelLayout, shape: Shape) -> Iterator[Error]:
    for name, attribute in registry.attributes_of(model).items():
        if attribute.in_key_only and not (shape.raw_keys and name in layout.identity):
            yield _error(
                model,
                "E047",
                f"{name} of {layout.label} is in_key_only, but it is not a part of the primary key of a table with "
                "RAW_KEYS.",
                "Leave in_key_only out, or name the attribute in the primary key.",
            )


def _check_shards(model: type[DynamoModel], layout: ModelLayout, shape: Shape) -> Iterator[Error]:
    """Report sharded keys in whose partition the number of a shard has no place."""
    declared, stored = recognition.model_names(layout.alias).declared, dict(shape.pairs)
    for key in layout.keys:
        name, _ = key_names(key.index)
        if key.sharding is None or name not in stored:
            continue
        if stored[name].name in declared or stored[name].type != "S":
            why = f"is the attribute {stored[name].name!r}, which cannot contain the number of a shard."
        elif shape.raw_keys and key.partition.parts and not key.partition.tail:
            why = "ends with a value of RAW_KEYS, which a shard number could not be separated from."
        else:
            continue
        yield _error(
            model,
            "E047",
            f"The key {key.name} of {layout.label} is sharded, and its partition {key.partition.source!r} {why}",
            'Use an index whose keys belong to no attribute, and end the partition with a literal: "USER#{name}#".',
        )


def _error(model: type[DynamoModel], number: str, message: str, hint: str | None = None) -> Error:
    return Error(message, hint=hint, obj=model, id=f"dynamo_single.{number}")
