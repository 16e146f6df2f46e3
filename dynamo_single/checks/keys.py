"""E007: two record types of one table whose objects could have the same primary key. E033: keys of tables by ``id``.

E007 uses what an attribute declares about its values: the prefix of an ``IdAttribute``, and ``choices``. Neither is
enforced when an object is written. If two objects do get the same key, creating the second one raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Final

from django.core.checks import Error
from msgspec.structs import replace

from dynamo_single.cache import entries
from dynamo_single.conf import aliases, table_settings
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.items import unique_rules
from dynamo_single.orm.model.bases import is_by_id, prefix_of
from dynamo_single.orm.rollout import states
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import IdAttribute
from dynamo_single.orm.schema.attributes.references import DelegatingAttribute
from dynamo_single.orm.schema.keys.template import KeyPart, Template, can_collide, in_shards
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.orm.schema.types import DynamoModel

#: The keys of items that do not belong to a model, by their description in errors.
_RESERVED: Final[dict[str, Callable[[], Iterable[tuple[str, str]]]]] = {
    "a claim on a unique value": unique_rules.claim_keys,
    "an item of the cache": lambda: entries.KEYS,
    "what migrations keep in the table": lambda: states.KEYS,
}
#: The most combinations of choices that are compared individually. Above it, the choices of a key are ignored.
MOST_COMBINATIONS: Final = 64

Pair = tuple[Template, Template]


def check_collisions(models: Sequence[object]) -> Iterator[Error]:
    """E007: two models of one table that could write the same primary key."""
    layouts: list[tuple[Any, ModelLayout, list[Pair]]] = []
    for model in registry.all_models():
        try:
            layout = registry.layout_of(model)
        except ConfigurationError:
            continue  # reported by E003
        layouts.append((model, layout, _possible_keys(model, layout)))
    asked = {*models}
    for model, layout, pairs in layouts:
        taken = _reserved_by(pairs, layout.alias) if model in asked else ""
        if taken:
            yield _error(
                model,
                f"{layout.label} could write the key of {taken}: {_keys_of(layout)}.",
                f"Begin the partition with another literal than {layout.primary.partition.source.split('#')[0]}, such "
                "as the model's name.",
            )
    for (first, one, pairs), (second, other, others) in combinations(layouts, 2):
        if one.alias != other.alias or (first not in asked and second not in asked):
            continue
        if any(can_collide(mine, theirs) for mine in pairs for theirs in others):
            yield _error(
                second,
                f"{other.label} and {one.label} could write the same primary key: {_keys_of(other)} and "
                f"{_keys_of(one)}.",
                "Start one of the templates with a different literal, such as the model's name. Different "
                "prefixes of IdAttributes and different choices of a part also distinguish keys.",
            )


def _error(model: type[DynamoModel], message: str, hint: str) -> Error:
    return Error(message, hint=hint, obj=model, id="dynamo_single.E007")


def _keys_of(layout: ModelLayout) -> str:
    return f"{layout.primary.partition.source!r} / {layout.primary.sort.source!r}"


def _reserved_keys() -> dict[str, list[Pair]]:
    """Return the key templates of the app's other items, by their description in errors."""
    return {
        taken: [(Template.parse(partition), Template.parse(sort)) for partition, sort in keys()]
        for taken, keys in _RESERVED.items()
    }


def _reserved_by(pairs: list[Pair], alias: str) -> str:
    """Return the description of the app's other items whose keys the model could write, or an empty string.

    A companion contains those about other tables. Requests for their keys are sent to the companion.
    """
    for each in (each for each in map(table_settings, aliases()) if each.companion):
        if alias in (each.alias, each.companion) and any(own[0].could_start_with(each.own_prefix) for own in pairs):
            return f"an item of the app about the table of {each.alias!r}, which is in its companion"
    if not table_settings(alias).is_own_place:
        return ""
    for taken, others in _reserved_keys().items():
        if any(can_collide(own, other) for own in pairs for other in others):
            return taken
    return ""


def _possible_keys(model: type[DynamoModel], layout: ModelLayout) -> list[Pair]:
    """Return the model's primary key as templates in which the known parts of values are literal text."""
    attributes = registry.attributes_of(model)
    pair = (layout.primary.partition, layout.primary.sort)
    # Without a type, the templates alone determine the model of an item.
    is_typed = table_settings(layout.alias).shape.type_attribute is not None
    found = _with_known_values(attributes, pair) if is_typed else [pair]
    if layout.primary.sharding is None:
        return found
    return [*found, *((in_shards(partition), sort) for partition, sort in found)]


def _with_known_values(attributes: Mapping[str, object], pair: Pair) -> list[Pair]:
    parts = {part.name: part for template in pair for part in template.parts}
    known = {name: found for name, part in parts.items() if (found := _known_beginnings(attributes[name], part))}
    count = 1
    for texts in known.values():
        count *= len(texts)
    if count > MOST_COMBINATIONS:
        known = {name: texts for name, texts in known.items() if len(texts) == 1}
    chosen = [dict(zip(known, texts, strict=True)) for texts in product(*known.values())]
    return [(_filled_template(pair[0], texts), _filled_template(pair[1], texts)) for texts in chosen]


def _known_beginnings(attribute: object, part: KeyPart) -> list[tuple[str, bool]]:
    """Return the known beginnings of a value, each with whether it is the whole value; empty if none is known.

    For a reference, they come from the primary key of the other model.
    """
    while isinstance(attribute, DelegatingAttribute) and not attribute.field.choices:
        attribute = attribute.target
    # Attributes that store the pk of an SQL model or an identity of several values have no field.
    field = getattr(attribute, "field", None)
    try:
        if field is not None and field.choices:
            return [(part.encode(value), True) for value, _ in field.flatchoices if value not in (None, "")]
        if isinstance(attribute, IdAttribute) and attribute.prefix and not part.spec:
            return [(part.encode(f"{attribute.prefix}-"), False)]
    except InvalidValue:
        pass  # a choice that does not fit a key, so that nothing is known
    return []


def _filled_template(template: Template, texts: dict[str, tuple[str, bool]]) -> Template:
    parts: list[KeyPart] = []
    literal = ""
    for part in template.parts:
        text, is_whole = texts.get(part.name, ("", False))
        literal += part.literal + text
        if not is_whole:
            parts.append(replace(part, literal=literal))
            literal = ""
    return replace(template, parts=tuple(parts), tail=literal + template.tail)


def check_single_key(model: type[DynamoModel]) -> Iterator[Error]:
    """Yield E033 for a model that is not a record, in a table whose key is only ``id``.

    Every item there is a separate partition.
    """
    alias = model._options.alias
    if table_settings(alias).key != "id":
        return
    if not is_by_id(model):
        primary = registry.layout_of(model).primary
        yield Error(
            f"The key of the table {alias!r} is 'id' alone, but the primary key "
            f"{primary.partition.source!r} / {primary.sort.source!r} does not belong to a record: no "
            "query could find an item by a part of it.",
            hint="Derive the model from models.Record, without a primary key of its own and with the id that it "
            "makes; or name another table in Meta.table.",
            obj=model,
            id="dynamo_single.E033",
        )
    elif not prefix_of(model) and (others := _conflicting_records(model)):
        yield Error(
            f"{model._meta.label} and {', '.join(others)} have id_prefix = '' in the table {alias!r}, "
            "whose key is 'id' alone: an identifier would not identify the model of its item.",
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
