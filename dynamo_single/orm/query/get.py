"""Objects by their whole primary keys, past Django's query and the choice of a key, where a question is that plain.

Whatever is asked or defined besides takes the ordinary way, which also words the errors. What is sent, and what counts
as found, is the same on both: one plan is made of the keys, and carried out as any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.items import batch_get
from dynamo_single.orm.items.encode import Values, computed_key
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.candidates import MAX_KEYS
from dynamo_single.orm.plan.plan import Query
from dynamo_single.orm.query.base import BETWEEN, ObjectIterable
from dynamo_single.orm.query.state import StatefulQuerySet
from dynamo_single.orm.requests.actions import ItemKey
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.fields.fetching import mark, to_tell
from dynamo_single.orm.schema.types import DynamoModel, owners_of
from dynamo_single.orm.where import lookups
from dynamo_single.table.table import get_table

_OURS = ("dynamo_single", "django")


#: The primary keys that ``pk``s give, with these and the values that they are made of.
Keys = Mapping[ItemKey, tuple[Any, Values]]


def key_of_one(queryset: StatefulQuerySet[DynamoModel], given: Mapping[str, object]) -> ItemKey | None:
    """The primary key that the arguments of ``get()`` give; ``None`` where the ordinary way is to be taken."""
    found = _key_and_values(queryset.model, given) if _asks_plainly(queryset) else None
    return None if found is None else found[0]


def keys_of_several(queryset: StatefulQuerySet[DynamoModel], pks: Sequence[object]) -> Keys | None:
    """The primary keys of objects with these ``pk``, each once; ``None`` where the ordinary way is to be taken."""
    if not pks or len(pks) > MAX_KEYS or queryset.query.order_by or not _asks_plainly(queryset):
        return None
    keys: dict[ItemKey, tuple[Any, Values]] = {}
    for pk in pks:
        found = _key_and_values(queryset.model, {"pk": pk})
        if found is None:
            return None
        keys[found[0]] = pk, found[1]
    return keys


async def by_pk(queryset: StatefulQuerySet[DynamoModel], keys: Keys) -> dict[Any, Any]:
    """The objects under some keys by their ``pk``, in the order of the keys; requests as those of ``objects()``."""
    return {_pk_of(obj, *keys[key]): obj for key, obj in await _found(queryset, tuple(keys))}


def _pk_of(obj: DynamoModel, pk: object, values: Values) -> Any:
    """An object's ``pk``: the one that it was asked for by, unless its item says something else than its key."""
    return pk if values.items() <= obj.__dict__.items() else obj.pk


async def objects(queryset: StatefulQuerySet[Any], keys: Sequence[ItemKey]) -> list[Any]:
    """The objects under some keys, in their order: one GetItem for one, else one BatchGetItem for each hundred."""
    return [obj for _, obj in await _found(queryset, keys)]


async def _found(queryset: StatefulQuerySet[Any], keys: Sequence[ItemKey]) -> list[tuple[ItemKey, Any]]:
    model = queryset.model
    layout, asked = registry.layout_of(model), queryset._asked
    await knowledge.ask(layout)
    query = Query(layout, visibility=asked.visibility, consistent=asked.consistent)
    plan = planner.plan_of_keys(query, keys, now=None if layout.expires is None else clock.instant())
    found = await batch_get.objects(model, get_table(layout.alias), plan)
    if (mode := to_tell(queryset._fetch_mode)) is not None:
        mark([obj for _, obj in found], mode)
    return found


def _asks_plainly(queryset: StatefulQuerySet[DynamoModel]) -> bool:
    """Whether a queryset asks for objects as they are stored, and nothing of a project's stands between."""
    if queryset._iterable_class is not ObjectIterable or not _nothing_between(type(queryset)):
        return False
    asked, query = queryset._asked, queryset.query
    # Without soft delete there are no deleted objects, and nothing is sent.
    if asked.visibility == "deleted" and not registry.layout_of(queryset.model).soft_delete:
        return False
    return not (
        query.where.children
        or query.is_sliced
        or not query.standard_ordering
        or query.select_related
        or query.deferred_loading[0]
        or query.annotations
        or query.combinator
        or query.extra
        or query.distinct_fields
        or queryset._prefetch_related_lookups
        or queryset._known_related_objects
        or asked.using_index is not None
        or asked.without
        or asked.in_memory is not None
        or asked.columns is not None
        or asked.computation is not None
        or asked.distinct
        or asked.inside
        or asked.no_secrets
    )


@cache
def _nothing_between(queryset_class: type[object]) -> bool:
    """Whether all that lies between a question and its objects is this app's or Django's own."""
    owners = owners_of(queryset_class, BETWEEN)
    return all(owner is None or owner.__module__.partition(".")[0] in _OURS for owner in owners)


@cache
def _identity_of(model: type[DynamoModel]) -> Mapping[str, object] | None:
    """The attributes of the identity; ``None`` if equality with one of them says less than a key does, or the shard
    is not known."""
    layout = registry.layout_of(model)
    if layout.primary.sharding is not None or lookups.identifying(model).intersection(layout.identity):
        return None
    attributes = registry.attributes_of(model)
    return {name: attributes[name] for name in layout.identity}


def _key_and_values(model: type[DynamoModel], given: Mapping[str, object]) -> tuple[ItemKey, Values] | None:
    identity = _identity_of(model)
    if identity is None:
        return None
    try:
        values = _values(model, identity, given)
        return None if values is None else (computed_key(model, values), values)
    except InvalidValue:
        return None


def _values(model: type[DynamoModel], identity: Mapping[str, Any], given: Mapping[str, object]) -> Values | None:
    """The values of the whole identity, if what is given is just that, in the form that is stored."""
    field = model._meta.pk
    if len(given) == 1 and "pk" in given:
        if isinstance(field, IdentityField):
            # What is split is spelled as the object's own pk, or an error.
            return field.split(given["pk"]) if type(given["pk"]) is str else None
        given = {field.attname: given["pk"]}
    if given.keys() != identity.keys():
        return None
    for name, value in given.items():
        prepared = identity[name].prepare(value)
        if type(prepared) is not type(value) or prepared != value:
            return None
    return dict(given)
