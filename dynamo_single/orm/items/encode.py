"""Convert an object to its item: prepared values, every key, and attributes of other programs to keep.

All write paths compute keys here and nowhere else. Nothing here sends a request.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import Any

from django.db.models import Field
from msgspec import Struct

from dynamo_single import clock
from dynamo_single.exceptions import EmptyKeyPart, InvalidValue
from dynamo_single.orm.conditions import lowering
from dynamo_single.orm.conditions.matching import matches, normalized_value
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition
from dynamo_single.orm.items.stored import object_values
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.rollout import following, knowledge
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.bindings import ModelBinding, Subject, binding_of, fact
from dynamo_single.orm.schema.fields.base import DateField, IdentityField, TimestampField
from dynamo_single.orm.schema.fields.simple import TimeField
from dynamo_single.orm.schema.keys.shards import Sharding, place_of, seconds, shard_suffix
from dynamo_single.orm.schema.keys.template import NoIdentity, Template
from dynamo_single.orm.schema.keys.values import HAS_TO_HAVE_VALUE, words
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout, Twin
from dynamo_single.orm.schema.types import DynamoModel, are_plain
from dynamo_single.orm.schema.upgrades import FIRST
from dynamo_single.table import names
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT, NewItem

Values = dict[str, Any]
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_Writer = tuple[str, str, Callable[[Any], dict[str, Any]]]

#: Two values of these types have the same stored value exactly if they are equal, except naive datetimes in the hour
#: that clocks show twice.
PLAIN = frozenset((str, int, bool, bytes, datetime.date, uuid.UUID, type(None)))


def is_same(attribute: Attribute, value: object, other: object) -> bool:
    """Return whether two prepared values have the same stored value: to Python ``True`` equals 1, in a document they
    differ."""
    if value is None or other is None:
        return value is other
    if type(value) is type(other) and type(value) in PLAIN:
        return bool(value == other)
    before = attribute.encoded(other).stored
    return attribute.encoded(value, before).stored is before


def is_same_item(item: Item, other: Item, model: type[DynamoModel], *, apart_from: Collection[str] = ()) -> bool:
    """Return whether two items are equal in everything that this model writes, apart from some physical names."""
    return all(
        (name in item) == (name in other)
        and (name not in item or normalized_value(item[name]) == normalized_value(other[name]))
        for name in known_names(model).difference(apart_from)
    )


def with_twin_names(item: NewItem, twins: Iterable[Twin]) -> NewItem:
    """Return a new item. During a rename, its attributes have both names, or one."""
    for twin in twins:
        item.pop(twin.other, None)
        if twin.is_kept and twin.used in item:
            item[twin.other] = item[twin.used]
    return item


def attributes_item(model: Subject, values: Values, encoded: Mapping[str, dict[str, Any]] = _NOTHING) -> NewItem:
    """The model's own attributes as they are stored, of prepared values; ``None`` is left out.

    ``encoded`` contains the AttributeValues of known values, by attribute.
    """
    writers, twins = _writers(model)
    item = {
        stored: encoded[name] if name in encoded else write(values[name])
        for name, stored, write in writers
        if values[name] is not None
    }
    return with_twin_names(item, twins) if twins else item


@fact
def _writers(binding: ModelBinding) -> tuple[tuple[_Writer, ...], tuple[Twin, ...]]:
    """Return by attribute its name, physical name and encoder; and the attributes that are being renamed."""
    attributes, infos = registry.attributes_of(binding.model), binding.layout.attributes
    writers = tuple((name, infos[name].stored, writer_of(each)) for name, each in attributes.items())
    return writers, binding.layout.twins


def writer_of(attribute: Attribute) -> Callable[[object], dict[str, object]]:
    """Return the encoder of a prepared value other than ``None``; it does not prepare the value again."""
    if type(attribute).to_attribute_value is not Attribute.to_attribute_value:
        return attribute.to_attribute_value
    kind, encode = attribute.attr_type, attribute.encode
    return lambda value: {kind: encode(value)}


class IndexKey(Struct, frozen=True, eq=False):
    """The stored form of a model's index key: the physical names of its pair, and its parts."""

    key: AccessKey
    index: str
    pair: tuple[str, str]
    #: The attributes of the key, and whether each is required; the index omits an item without a required attribute.
    needs: tuple[tuple[str, bool], ...]
    #: The condition on the items of the index, in stored names, and the attributes that it uses.
    condition: Condition = EVERYTHING
    conditioned: tuple[_Writer, ...] = ()


@fact
def index_keys(binding: ModelBinding) -> tuple[tuple[IndexKey, ...], tuple[IndexKey, ...]]:
    """Return the current index keys of live objects, and those of objects in the trash."""
    layout, keys = binding.layout, binding.index_keys
    live = tuple(_index_key_of(layout, key) for key in keys if not following.is_trash(key))
    return live, tuple(_index_key_of(layout, key) for key in keys if following.is_trash(key))


def _index_key_of(layout: ModelLayout, key: AccessKey) -> IndexKey:
    index = key.index or ""
    pair = names.key_names(index)
    needs = tuple((name, layout.attributes[name].required) for name in key.required_variables)
    condition = key.condition
    if condition is None:
        return IndexKey(key, index, pair, needs)
    attributes = {name: registry.attributes_of(registry.model_of(layout))[name] for name in condition.attributes}
    infos = layout.attributes
    conditioned = tuple((name, infos[name].stored, writer_of(each)) for name, each in attributes.items())
    return IndexKey(key, index, pair, needs, lowering.with_stored_names(condition, layout), conditioned)


def key_attributes(model: Subject, values: Values, encoded: Mapping[str, Any] = _NOTHING) -> NewItem:
    """Return the index keys for these values: those of a live object, or the trash's for a deleted one.

    ``encoded`` contains the AttributeValues that are known already, by attribute; ``None`` for no value.
    """
    binding = binding_of(model)
    live, trash = index_keys(binding)
    found: NewItem = {}
    for each in live if values.get(registry.DELETED_AT) is None else trash:
        texts = _index_key(binding.model, each, values, encoded)
        if texts is not None:
            found |= {name: {"S": text} for name, text in zip(each.pair, texts, strict=True)}
    return found


def _index_key(
    model: type[DynamoModel], index_key: IndexKey, values: Values, encoded: Mapping[str, Any]
) -> tuple[str, str] | None:
    """Both halves of an index key, or neither: what lacks a part, or does not meet its condition, stays out of it."""
    if index_key.conditioned:
        asked = {stored: encoded[name] for name, stored, _ in index_key.conditioned if name in encoded}
        for name, stored, write in index_key.conditioned:
            if name not in encoded and values.get(name) is not None:
                asked[stored] = write(values[name])
        if not matches(index_key.condition, {stored: value for stored, value in asked.items() if value is not None}):
            return None
    for name, required in index_key.needs:
        if values.get(name) is None or values[name] == "":
            if required:
                given = registry.attributes_of(model)[name].origin or name
                another, it = (
                    ("a value", "it") if given == name else ("a string that is not empty after normalization", name)
                )
                raise EmptyKeyPart(
                    f"{model._meta.label}: {name} is empty, and the key {index_key.key.name} on {index_key.index} "
                    f"needs it. Give {given} {another}, or declare {it} blank=True to leave objects without one out of "
                    f"that index, or write {{{name}:first}} in the key to keep them in it.",
                    words=words(HAS_TO_HAVE_VALUE, name=given),
                )
            return None
    return _rendered(model, index_key.key, values)


def _rendered(model: type[DynamoModel], key: AccessKey, values: Mapping[str, object]) -> ItemKey:
    if key.sharding is None:
        partition = _render(model, key.partition, values, PARTITION_KEY_LIMIT)
    else:
        ending = shard_suffix(_place(model, key.sharding, values))
        partition = _render(model, key.partition, values, PARTITION_KEY_LIMIT - len(ending)) + ending
    return partition, _render(model, key.sort, values, SORT_KEY_LIMIT)


def _place(model: type[DynamoModel], sharding: Sharding, values: Mapping[str, object]) -> int:
    """In which shard an object with these values lies."""
    value, at = values.get(sharding.attribute), values.get(sharding.at)
    if value is None or not isinstance(at, datetime.datetime):
        name = sharding.attribute if value is None else sharding.at
        raise EmptyKeyPart(
            f"{model._meta.label}: {name} is missing, and decides about the shard. Give it a value first."
        )
    try:
        return sharding.place(knowledge.schedule(registry.layout_of(model)), value, at)
    except NoIdentity as error:
        raise InvalidValue(f"{model._meta.label}: {error}") from error


def _render(model: type[DynamoModel], template: Template, values: Mapping[str, object], limit: int) -> str:
    try:
        return template.render(values, limit=limit)
    except InvalidValue as error:
        kind = InvalidValue if isinstance(error, NoIdentity) else type(error)
        # The other errors contain names of attributes and sizes, but not values.
        if kind is InvalidValue and any(secrecy.is_secret(model, name) for name in template.variables):
            text = f"a value does not fit the key {template.source!r}. The value of a secret is not shown."
            raise InvalidValue(f"{model._meta.label}: {text}", words=error.words) from None
        raise kind(f"{model._meta.label}: {error}") from error


def check_trash_key(model: type[DynamoModel], values: Mapping[str, object]) -> None:
    """Reject a new object that could never move to the trash, because its identity and deletion time are a key
    there."""
    for each in index_keys(model)[1]:
        try:
            each.key.sort.render({**values, registry.DELETED_AT: clock.EPOCH}, limit=SORT_KEY_LIMIT)
        except InvalidValue as error:
            raise type(error)(
                f"{model._meta.label} could not be moved to the trash, alone or with its parent. {error} Nothing was "
                f"written. Make {', '.join(model._identity)} shorter."
            ) from error


def computed_key(model: type[DynamoModel], values: Mapping[str, object]) -> ItemKey:
    """The primary key that the values give; raises ``EmptyKeyPart`` by the missing attribute's name."""
    return _rendered(model, registry.layout_of(model).primary, values)


def possible_keys(model: type[DynamoModel], values: Mapping[str, object]) -> tuple[ItemKey, ...]:
    """Return the possible primary keys of an object, given its identity and optionally its time."""
    primary = registry.layout_of(model).primary
    sharding = primary.sharding
    if sharding is None or values.get(sharding.at) is not None:
        return (computed_key(model, values),)
    sort, whole = (_render(model, primary.sort, values, SORT_KEY_LIMIT), primary.partition)
    partition = _render(model, whole, values, PARTITION_KEY_LIMIT)
    places = sharding.places(knowledge.schedule(registry.layout_of(model)), values=[values[sharding.attribute]])
    return tuple((partition + shard_suffix(place), sort) for place in places)


def is_key_of(model: type[DynamoModel], values: Mapping[str, object], key: ItemKey) -> bool:
    """Return whether an object with these values may be stored under a key; raises ``EmptyKeyPart`` as a write would.

    In addition to the key of a new object, it may have the key to which ``dynamo_verify --repair`` moves it: that of
    the folded value, in an older entry of its model's shards.
    """
    return computed_key(model, values) == key or folded_key(model, values) == key


def folded_key(model: type[DynamoModel], values: Mapping[str, object], fold: str = "") -> ItemKey | None:
    """Return the key of the folded value, for an object whose shard depends on the unfolded value.

    There is none unless a later entry of the shards folds the value, or a ``fold`` is given.
    """
    layout = registry.layout_of(model)
    sharding = layout.primary.sharding
    if sharding is None or not sharding.fold:
        return None
    schedule, at = knowledge.schedule(layout), values.get(sharding.at)
    if values.get(sharding.attribute) is None or not isinstance(at, datetime.datetime):
        return None
    entry, fold = schedule.entry(seconds(at)), fold or schedule.fold
    if entry.fold or not fold:
        return None
    ending = shard_suffix(place_of(sharding.text(values[sharding.attribute], fold), entry.shards))
    partition = _render(model, layout.primary.partition, values, PARTITION_KEY_LIMIT - len(ending))
    return partition + ending, _render(model, layout.primary.sort, values, SORT_KEY_LIMIT)


def key_of_pk(model: type[DynamoModel], pk: object) -> ItemKey:
    """The primary key of the object with a ``pk``; for a sharded model, this alone does not determine it."""
    return computed_key(model, _identity_of(model, pk))


def keys_of_pk(model: type[DynamoModel], pk: object) -> tuple[ItemKey, ...]:
    """The primary keys that the object with a ``pk`` can have: several of a sharded model."""
    return possible_keys(model, _identity_of(model, pk))


def _identity_of(model: type[DynamoModel], pk: object) -> Values:
    field = model._meta.pk
    return field.split(str(pk)) if isinstance(field, IdentityField) else {field.attname: pk}


def pk_of(model: type[DynamoModel], values: Mapping[str, Any]) -> Any:
    """The ``pk`` that the attributes of an identity give."""
    field: Any = model._meta.pk
    if isinstance(field, IdentityField):
        return field.joined(values[name] for name in field.names)
    return values[field.attname]


def primary_key(obj: DynamoModel) -> dict[str, str]:
    """Return the object's key as its values give it, by physical name."""
    model, stored = type(obj), None if obj._stored is None else key_of(obj._stored)
    kept = stored is not None and folded_key(model, obj.__dict__) == stored
    partition, sort = stored if kept and stored is not None else computed_key(model, obj.__dict__)
    return {names.PARTITION_KEY: partition, names.SORT_KEY: sort}


def stored_key(obj: DynamoModel) -> ItemKey:
    """Return the key of a stored object, from its last read or write."""
    return key_of(obj._stored)


def item_from(model: Subject, values: Values, encoded: Mapping[str, dict[str, Any]] = _NOTHING) -> NewItem:
    """The whole item that the values give: key, type, index keys and attributes; as ``attributes_item()``."""
    binding = binding_of(model)
    partition, sort = computed_key(binding.model, values)
    return {
        names.PARTITION_KEY: {"S": partition},
        names.SORT_KEY: {"S": sort},
        names.ITEM_TYPE: {"S": binding.layout.item_type},
        **version_mark(binding),
        **key_attributes(binding, values, encoded),
        **attributes_item(binding, values, encoded),
    }


def stored_name(model: Subject, name: str) -> str:
    """The physical name of an attribute."""
    return binding_of(model).layout.attributes[name].stored


def known_names(model: Subject) -> set[str]:
    """Return the physical names that this model writes; writes keep other attributes of an item."""
    attributes = {info.stored for info in binding_of(model).layout.attributes.values()}
    return attributes | index_names(model) | version_mark(model).keys()


def version_mark(model: Subject) -> NewItem:
    """The schema version of the model's items, which code of an earlier release compares; usually none."""
    rollout = binding_of(model).rollout
    version = FIRST if rollout is None else rollout.version
    return {} if version == FIRST else {names.SCHEMA_VERSION: {"N": str(version)}}


def index_names(model: Subject) -> set[str]:
    """Return the physical names of the index keys that the app writes for the model."""
    indexes = {key.index for key in binding_of(model).index_keys if key.index}
    return {name for index in indexes for name in names.key_names(index)}


def set_automatic(obj: DynamoModel, *, add: bool) -> None:
    """Let each field set what it sets itself before a save, such as the time."""
    model: Any = type(obj)
    for field in fields_setting_themselves(model):
        field.pre_save(obj, add)


@cache
def fields_setting_themselves(model: type[DynamoModel]) -> tuple[Any, ...]:
    """The fields that may set their value themselves; Django's own only gives it."""
    fields = (field for field in model._meta.concrete_fields if hasattr(field, "attribute"))
    return tuple(field for field in fields if type(field).pre_save is not Field.pre_save and not _is_given(field))


def _is_given(field: Any) -> bool:
    """Return whether a field could set a time without declaring it."""
    automatic = type(field).pre_save in {TimestampField.pre_save, DateField.pre_save, TimeField.pre_save}
    return automatic and not (field.auto_now or field.auto_now_add)


@cache
def may_block(model: type[DynamoModel]) -> bool:
    """Return whether a field may wait when it sets its value: for a storage, a request's user, or a project's own
    code."""
    fields = fields_setting_themselves(model)
    return any(getattr(field, "may_wait", False) or not are_plain(type(field), ("pre_save",)) for field in fields)


def automatic_names(obj: DynamoModel) -> list[str]:
    """The attributes that follow every write."""
    return [f.attname for f in obj._meta.concrete_fields if getattr(f, "auto_now", False)]


def check_keys(obj: DynamoModel) -> None:
    """Refuse values that no key can hold, and another primary key for a stored object; missing parts are allowed."""
    model: Any = type(obj)
    copies: Values = {copy.name: copy.current(obj.__dict__) for copy in registry.copies_of(model)}
    values = {**object_values(obj), **copies}
    with suppress(EmptyKeyPart):
        computed_key(model, values)
        if obj._stored is not None and not is_key_of(model, values, key_of(obj._stored)):
            raise InvalidValue(f"{', '.join(model._identity)}: what makes up the primary key cannot change.")
    live, trash = index_keys(model)
    for each in live if values.get(registry.DELETED_AT) is None else trash:
        asked = [registry.attributes_of(model)[name] for name, _stored, _write in each.conditioned]
        prepared = {asks.name: asks.prepare(values.get(asks.name)) for asks in asked if not asks.document}
        encoded = {asks.name: asks.encoded(values.get(asks.name)).stored for asks in asked if asks.document}
        # Individually, because a missing part of one key does not affect the errors of another.
        with suppress(EmptyKeyPart):
            _index_key(model, each, {**values, **prepared}, encoded)
