"""What of an item is kept in other items, and of others in it: copies and their sources, counters and what they count.

One item is named by its key, the many that follow one by the partition that has them. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from dynamo_single.exceptions import NotSupported
from dynamo_single.inspection.masking import Masks
from dynamo_single.inspection.secrets import masked_text
from dynamo_single.orm.effects import child_counters
from dynamo_single.orm.effects.holders import found_by_keys
from dynamo_single.orm.items import serialization
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.kinds import DynamoModel

if TYPE_CHECKING:
    from dynamo_single.orm.schema.children import Children

#: Partitions that are named of what lies in several, as in shards.
_PARTITIONS: Final = 20

#: The names of what is kept, the key of the other item, and its model.
Kept = tuple[str, ItemKey, Any]


class Partition(Struct, frozen=True):
    """Where items lie that have something of one: their copies of it, or themselves as what it counts.

    ``label`` has the names of the attributes, ``model`` is that of the items.
    """

    relation: Literal["copies", "counted"]
    label: str
    alias: str
    index: str | None
    partition: str
    model: Any


def sources_of(model: type[DynamoModel], values: Mapping[str, object]) -> list[Kept]:
    """What an item has copies of."""
    return _together(
        (copy.name, key, copy.source_model)
        for copy in registry.copied_of(model)
        if (pk := values.get(copy.reference_field.attname)) is not None
        for key in serialization.keys_of_pk(copy.source_model, pk)
    )


def counters_of(model: type[DynamoModel], item: Item) -> list[Kept]:
    """What counts an item as it is now."""
    return _together(
        (counter.name, key, each.parent)
        for each, key in child_counters.counting(model, item)
        for counter in registry.counters_of(each.parent)
        if counter.attr_name == each.name
    )


def followers_of(model: type[DynamoModel], pk: object, masks: Masks) -> Iterator[Partition]:
    """The partitions of the items that have copies of an object, and of those that it counts.

    Those that no key finds, those with a secret in their key and the trash, which has everybody's, are left out.
    """
    copies: dict[tuple[Any, Any], list[str]] = {}
    for copy in registry.copied_from(model):
        copies.setdefault((copy.field.model, copy.reference_field), []).append(copy.name)
    for (holder, field), found in copies.items():
        for queryset in _found(partial(found_by_keys, holder, field, pk, deleted=False)):
            yield from _partitions("copies", ", ".join(found), holder, queryset, masks)
    counted: dict[Any, list[str]] = {}
    for counter in registry.counters_of(model):
        counted.setdefault(getattr(model, counter.children), []).append(counter.name)
    for children, found in counted.items():
        for queryset in _found(partial(_children, children, pk)):
            yield from _partitions("counted", ", ".join(found), children.model, queryset, masks)


def _together(found: Iterable[Kept]) -> list[Kept]:
    """One of each item, with all the names."""
    names: dict[tuple[ItemKey, Any], list[str]] = {}
    for name, key, model in found:
        names.setdefault((key, model), []).append(name)
    return [(", ".join(dict.fromkeys(each)), key, model) for (key, model), each in names.items()]


def _children(children: Children, pk: object) -> list[DynamoModel]:
    return [child_counters.live_children(children, pk)]


def _found(make: Callable[[], list[Any]]) -> list[DynamoModel]:
    try:
        return make()
    except NotSupported:  # no key finds them, which is E003 and E019's to report
        return []


def _partitions(
    relation: Literal["copies", "counted"], label: str, model: Any, queryset: Any, masks: Masks
) -> Iterator[Partition]:
    alias = registry.layout_of(model).alias
    for index, partition in list(dict.fromkeys(_read(queryset._plan(ordered=False))))[:_PARTITIONS]:
        if masked_text(alias, partition, masks) == partition:
            yield Partition(relation, label, alias, index, partition, model)


def _read(plan: Plan) -> Iterator[tuple[str | None, str]]:
    """The partitions that a plan reads, each with its index."""
    for part in plan.parts or (plan,):
        yield from ((part.index, each.partition) for each in part.conditions)
        if part.kind in ("get", "batch_get"):
            yield from ((None, partition) for partition, _sort in part.keys)
