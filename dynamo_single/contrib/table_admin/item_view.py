"""The view of one item: its keys with their templates, its size, its attributes without secrets, and related items.

The view depends only on the item and the models, and sends no requests, except in a model's own code that defines its
derived items. Related items are copies and their sources, and counters and the items that they count. A single related
item is named by its key, and many by the partition that contains them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from dynamo_single.admin.secrets import CACHE_TYPES, Masks
from dynamo_single.conf import COMPANION_PREFIX, table_settings
from dynamo_single.contrib.doctor.patterns import number_of
from dynamo_single.contrib.table_admin.masked_keys import (
    about,
    masked_cache_key,
    masked_key,
    masked_text,
)
from dynamo_single.contrib.table_admin.own_names import stored_item
from dynamo_single.exceptions import InvalidValue, NotSupported, UnexpectedItem
from dynamo_single.orm.effects import counters, derived, unique_claims
from dynamo_single.orm.effects.copy_updates import holder_query
from dynamo_single.orm.effects.referrers import ReferrerQuery
from dynamo_single.orm.items import decode, encode
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.request import StoredValue
from dynamo_single.table.shaped import joined
from dynamo_single.table.shaped.sortable import key_value

#: The most partitions that are named for items in several of them, such as shards.
_PARTITIONS: Final = 20

#: The names of the attributes, the key of the other item, and its model.
Kept = tuple[str, ItemKey, Any]


class Partition(Struct, frozen=True):
    """A partition with related items: the holders of copies of an item, or the items that it counts.

    ``label`` contains the names of the attributes; ``model`` is the model of the related items.
    """

    relation: Literal["copies", "counted"]
    label: str
    alias: str
    index: str | None
    partition: str
    model: Any


def sources_of(model: type[DynamoModel], values: Mapping[str, object]) -> list[Kept]:
    """Return the sources of an item's copies."""
    return _together(
        (copy.name, key, copy.source_model)
        for copy in registry.copied_of(model)
        if (pk := values.get(copy.reference_field.attname)) is not None
        for key in encode.keys_of_pk(copy.source_model, pk)
    )


def counters_of(model: type[DynamoModel], item: Item) -> list[Kept]:
    """Return the items that currently count an item."""
    return _together(
        (counter.name, key, each.parent)
        for each, key in counters.counting_parents(model, item)
        for counter in registry.counters_of(each.parent)
        if counter.attr_name == each.name
    )


def followers_of(model: type[DynamoModel], pk: object, masks: Masks) -> Iterator[Partition]:
    """Yield the partitions of the items that have copies of an object, and of the items that it counts.

    It omits items that no key finds, keys with a secret, and the trash, which all objects of a model share.
    """
    copies: dict[tuple[Any, Any], list[str]] = {}
    for copy in registry.copied_from(model):
        copies.setdefault((copy.field.model, copy.reference_field), []).append(copy.name)
    for (_holder, field), found in copies.items():
        yield from _partitions("copies", found, holder_query(field, deleted=False), pk, masks)
    counted: dict[Any, list[str]] = {}
    for counter in registry.counters_of(model):
        counted.setdefault(getattr(model, counter.children), []).append(counter.name)
    for children, found in counted.items():
        yield from _partitions("counted", found, ReferrerQuery(children, "live"), pk, masks)


def _together(found: Iterable[Kept]) -> list[Kept]:
    """Merge the names of each item."""
    names: dict[tuple[ItemKey, Any], list[str]] = {}
    for name, key, model in found:
        names.setdefault((key, model), []).append(name)
    return [(", ".join(dict.fromkeys(each)), key, model) for (key, model), each in names.items()]


def _partitions(
    relation: Literal["copies", "counted"], names: Iterable[str], query: ReferrerQuery, pk: object, masks: Masks
) -> Iterator[Partition]:
    model = query.children.model
    alias = registry.layout_of(model).alias
    try:
        plan = query.queryset([pk])._plan()
    except NotSupported:  # no key finds them, which E003 and E019 report
        return
    for index, partition in list(dict.fromkeys(_read(plan)))[:_PARTITIONS]:
        if masked_text(alias, partition, masks) == partition:
            yield Partition(relation, ", ".join(names), alias, index, partition, model)


def _read(plan: Plan) -> Iterator[tuple[str | None, str]]:
    """Yield the partitions that a plan reads, each with its index."""
    for part in plan.parts or (plan,):
        yield from ((part.index, each.partition) for each in part.conditions)
        if part.kind in ("get", "batch_get"):
            yield from ((None, partition) for partition, _sort in part.keys)


#: The characters of a value that a list of items shows.
SHORT: Final = 60

Relation = Literal["claim", "owner", "reference", "derived", "source", "counter"]


class ShownKey(Struct, frozen=True):
    """One of an item's keys; ``index`` is ``None`` for the table's primary key.

    ``place`` is the partition for a link, or ``None`` if a part of the key is masked.
    """

    index: str | None
    partition: str
    sort: str
    name: str = ""
    templates: tuple[str, str] = ("", "")
    place: str | None = None


class Link(Struct, frozen=True):
    """A related item and its relation; the permission for ``model`` decides who may see it."""

    relation: Relation
    label: str
    key: ItemKey
    model: Any


class ShownItem(Struct, frozen=True):
    """The visible parts of an item. ``key`` is ``None`` if a part of it is masked: no address can contain it."""

    item_type: str
    model: Any
    size: int
    keys: tuple[ShownKey, ...]
    visible: Mapping[str, StoredValue]
    text: str
    key: ItemKey | None
    pk: Any = None
    in_trash: bool = False
    #: The model whose object the item is; for a claim, ``model`` is the owner's model.
    own_model: Any = None

    @property
    def color(self) -> int:
        """The number of the item type's color."""
        return number_of(self.item_type)


def shown(alias: str, item: Item, indexes: Iterable[str], masks: Masks) -> ShownItem:
    """Return the visible parts of a stored item."""
    item_type = item.get(names.ITEM_TYPE, {}).get("S", "")
    model = model_shown(alias, item)
    keys = tuple(keys_of(alias, item, indexes, masks))
    key_names = {name for index in (None, *indexes) for name in names.key_names(index)}
    own = {name: value for name, value in item.items() if name not in key_names}
    visible = masks.masked(registry.model_of_type(alias, item_type), item_type, own)
    if item_type == names.CLAIM_ITEM_TYPE and keys[0].place is None:
        visible |= {name: {"S": MASK} for name in (names.CLAIM_OWNER_PARTITION, names.CLAIM_OWNER_SORT)}
    key = None if keys[0].place is None else key_of(item)
    pairs = [(each.index, each.partition, each.sort) for each in keys]
    return ShownItem(
        item_type=item_type,
        model=model,
        size=item_size(item),
        keys=keys,
        visible={name: value for name, value in sorted(visible.items()) if name != names.ITEM_TYPE},
        text=as_text(stored_item(alias, {**_single_key(alias, keys), **visible}, pairs)),
        key=key,
        pk=None if key is None else _identity(alias, item),
        in_trash=names.DELETED_AT in item,
        own_model=registry.model_of_type(alias, item_type),
    )


def model_shown(alias: str, item: Item) -> type[DynamoModel] | None:
    """Return the model whose permission decides who may see an item; for a claim, its owner's."""
    item_type = item.get(names.ITEM_TYPE, {}).get("S", "")
    if item_type == names.CLAIM_ITEM_TYPE:
        partition: str = item[names.PARTITION_KEY]["S"]
        if partition.startswith(COMPANION_PREFIX):
            _, alias, partition = about(partition)
        item_type = partition.split("#")[1] if "#" in partition else ""
    return registry.model_of_type(alias, item_type)


def as_text(item: Mapping[str, object]) -> str:
    """Return DynamoDB's JSON of an item, one attribute a line; binary values are base64, as in AWS's JSON."""
    lines = [
        f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False, default=binary_text)}"
        for name, value in item.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}"


def short(value: StoredValue) -> str:
    """Return a value for a list of items: the beginning of its text, or its type."""
    ((kind, held),) = value.items()
    if kind in {"M", "L", "SS", "NS", "BS"}:
        return f"{kind} ({len(held)})"
    text = f"B ({len(held)})" if kind == "B" else "null" if kind == "NULL" else str(held)
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


def binary_text(value: object) -> str:
    """Return a binary value as base64, for ``json.dumps()``."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    raise TypeError(f"{type(value)} is no value of an item.")


def keys_of(alias: str, item: Item, indexes: Iterable[str], masks: Masks) -> Iterator[ShownKey]:
    """Yield the visible keys of an item, the table's primary key first."""
    item_type = item.get(names.ITEM_TYPE, {}).get("S", "")
    model = registry.model_of_type(alias, item_type)
    secret = masks.attributes(model)
    layout = None if model is None else registry.layout_of(model)
    own = () if layout is None else (layout.primary, *layout.index_keys)
    for index in (None, *indexes):
        partition_name, sort_name = names.key_names(index)
        if partition_name not in item or sort_name not in item:
            continue
        partition, sort = (_key_text(item[name]) for name in (partition_name, sort_name))
        key = _made_by(own, index, partition, sort)
        # A key that does not match any template may contain any value of the model's keys.
        suspicious = bool(secret) and key is None and any(secret.intersection(each.variables) for each in own)
        seen = (MASK, MASK) if suspicious else masked_key(key, secret, masks.log_key(partition), sort)
        if item_type in CACHE_TYPES:
            seen = masked_cache_key(partition), sort
        elif item_type == names.CLAIM_ITEM_TYPE:
            seen = masks.key(alias, partition, sort)
        yield ShownKey(
            index,
            *seen,
            name="" if key is None else key.name,
            templates=("", "") if key is None else (key.partition.source, key.sort.source),
            place=partition if seen == (partition, sort) else None,
        )


def _key_text(value: StoredValue) -> str:
    ((kind, held),) = value.items()
    return base64.b64encode(held).decode() if kind == "B" else str(held)


def _made_by(own: Sequence[AccessKey], index: str | None, partition: str, sort: str) -> AccessKey | None:
    for key in own:
        if key.index == index and key.has_partition(partition) and key.sort.matches(sort):
            return key
    return None


def _single_key(alias: str, keys: Sequence[ShownKey]) -> dict[str, Any]:
    """Return the key of an item in a table without a sort key, whose key joins the two parts of the app's own."""
    shape = table_settings(alias).shape
    if shape.sort is not None or not keys or keys[0].index is not None:
        return {}
    key = keys[0]
    if key.place is None:
        return {shape.partition.name: {"S": MASK}}
    text = joined.id_of_pair(key.partition, key.sort, by_prefix=shape.by_prefix)
    return {shape.partition.name: key_value({"S": text}, shape.partition.type)}


def _identity(alias: str, item: Item) -> Any:
    """Return the ``pk`` of an item's object, or ``None`` if it is not an object or cannot be read."""
    model = registry.model_of_type(alias, item.get(names.ITEM_TYPE, {}).get("S", ""))
    if model is None:
        return None
    try:
        values = decode.values_of(model, item)
        return model(**{name: values[name] for name in registry.layout_of(model).identity}).pk
    except (InvalidValue, UnexpectedItem):
        return None


def links_of(alias: str, item: Item, masks: Masks) -> Iterator[Link]:
    """Yield the related items: claims and their owner, references, sources of copies, counters, and derived items.

    It omits items whose keys contain a secret. The model's own code defines the derived items.
    """
    item_type = item.get(names.ITEM_TYPE, {}).get("S", "")
    if item_type == names.CLAIM_ITEM_TYPE:
        owner = [item.get(name, {}).get("S") for name in (names.CLAIM_OWNER_PARTITION, names.CLAIM_OWNER_SORT)]
        model = model_shown(alias, item)
        # In the list of a companion, the owner is in another table.
        if all(owner) and (model is None or model._options.alias == alias):
            yield Link("owner", "", (str(owner[0]), str(owner[1])), model)
    model = registry.model_of_type(alias, item_type)
    if model is None:
        return
    secret = masks.attributes(model)
    try:
        values = decode.values_of(model, item)
        for key, rule in unique_claims.claims_of(model, item).items():
            if secret.isdisjoint(rule.fields if rule.members is None else (*rule.fields, rule.members.name)):
                yield Link("claim", ", ".join(rule.fields), key, model)
        found = [
            *_references(model, values),
            *(Link("source", *each) for each in sources_of(model, values)),
            *(Link("counter", *each) for each in counters_of(model, item)),
        ]
        yield from (link for link in found if not _is_named_by_secret(link.model, masks))
        for key, made in derived.derived_items(model, item).items():
            made_of = registry.model_of_type(alias, made[names.ITEM_TYPE]["S"])
            if not _is_named_by_secret(made_of, masks):
                yield Link("derived", "", key, made_of)
    except (InvalidValue, UnexpectedItem):
        return  # dynamo_verify reports the error


def places_of(alias: str, item: Item, masks: Masks) -> list[Partition]:
    """Return the partitions of the items that have copies of an item, and of the items that it counts."""
    model = registry.model_of_type(alias, item.get(names.ITEM_TYPE, {}).get("S", ""))
    pk = _identity(alias, item)
    return [] if model is None or pk is None else list(followers_of(model, pk, masks))


def _is_named_by_secret(model: type[DynamoModel] | None, masks: Masks) -> bool:
    return model is not None and not masks.attributes(model).isdisjoint(registry.layout_of(model).identity)


def _references(model: type[DynamoModel], values: Mapping[str, object]) -> Iterator[Link]:
    for field in model._meta.concrete_fields:
        target: Any = getattr(field.remote_field, "model", None)
        value = values.get(field.attname)
        if target is None or value is None or not hasattr(target, "_options"):
            continue
        if target._options.alias == model._options.alias:
            for key in encode.keys_of_pk(target, value):
                yield Link("reference", field.name, key, target)
