"""Objects by their whole primary keys, past Django's query and the choice of a key, where a question is that plain.

Whatever is asked or defined besides takes the ordinary way, which also words the errors. What is sent, and what counts
as found, is the same on both: one plan is made of the keys, and carried out as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from msgspec import Struct

from dynamo_single import clock
from dynamo_single.conf import default_fetch_mode
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.lowering import lower, missing_condition
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition
from dynamo_single.orm.items import batch_get
from dynamo_single.orm.items.decode import reader_of
from dynamo_single.orm.items.encode import Values
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.candidates import MAX_KEYS
from dynamo_single.orm.plan.neighbours import KEY, KeyRange, Sharing, neighbours
from dynamo_single.orm.plan.plan import KeyCondition, Query, Visibility
from dynamo_single.orm.query.base import BETWEEN, ObjectIterable
from dynamo_single.orm.query.state import StatefulQuerySet
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.actions import ItemKey
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.attributes.scalars import is_plain_text
from dynamo_single.orm.schema.bindings import ModelBinding, binding_if_known, fact
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.fields.fetching import BY_NAME, set_modes
from dynamo_single.orm.schema.types import DynamoModel, M, are_plain, owners_of
from dynamo_single.orm.where import lookups
from dynamo_single.table import names
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT, NewItem, Request
from dynamo_single.table.table import get_table

_OURS = ("dynamo_single", "django")


#: The primary keys that ``pk``s give, with these and the values that they are made of.
Keys = Mapping[ItemKey, tuple[Any, Values]]


def key_of_one(queryset: StatefulQuerySet[DynamoModel], given: Mapping[str, object]) -> ItemKey | None:
    """The primary key that the arguments of ``get()`` give; ``None`` where the ordinary way is to be taken."""
    write = key_writer(queryset.model) if _is_plain_query(queryset) else None
    found = None if write is None else write(given)
    return None if found is None else found[0]


def keys_of_several(queryset: StatefulQuerySet[DynamoModel], pks: Sequence[object]) -> Keys | None:
    """The primary keys of objects with these ``pk``, each once; ``None`` where the ordinary way is to be taken."""
    if not pks or len(pks) > MAX_KEYS or queryset.query.order_by or not _is_plain_query(queryset):
        return None
    write = key_writer(queryset.model)
    if write is None:
        return None
    keys: dict[ItemKey, tuple[Any, Values]] = {}
    for pk in pks:
        found = write({"pk": pk})
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


async def one(queryset: StatefulQuerySet[M], key: ItemKey) -> list[M]:
    """The object under a key, if there is one: one GetItem."""
    model: Any = queryset.model
    asked, table = queryset._asked, get_table(model._options.alias)
    binding, compiled = binding_if_known(model, table), None
    if binding is not None and atomic_block.current() is None:
        compiled = lookup(binding, asked.visibility, asked.consistent)
    if compiled is None or not compiled.decides(key):
        return [obj for _, obj in await _found(queryset, (key,))]
    item = (await table.ask(compiled.request(key))).get("Item")
    found = [compiled.make(item)] if item is not None and compiled.is_wanted(item) else []
    _tell(queryset, found)
    return found


class Lookup(Struct, frozen=True, eq=False):
    """How an object is read by its whole key: the request but for the key, and what is made of the answer.

    ``shares`` says which other keys may be the same one; ``None`` if none of them may, or each.
    """

    params: Mapping[str, object]
    shares: Sharing | None
    is_wanted: Callable[[NewItem], bool]
    make: Callable[[NewItem], Any]

    def request(self, key: ItemKey) -> Request:
        """Return the request for the item under a key."""
        written = {names.PARTITION_KEY: {"S": key[0]}, names.SORT_KEY: {"S": key[1]}}
        return Request("GetItem", {"Key": written, **self.params})

    def decides(self, key: ItemKey) -> bool:
        """Return whether nothing else than an object of the model can have this key, or it does not matter."""
        return self.shares is None or not self.shares.applies((_range_of(key),))


@fact
def lookup(binding: ModelBinding, visibility: Visibility, consistent: bool) -> Lookup | None:
    """The lookup of a model; ``None`` while an attribute is being renamed, and if objects expire."""
    layout = binding.layout
    if binding.rollout is not None or layout.expires is not None:
        return None
    key = ("", "")  # no item has it
    shares: Sharing | None = neighbours(layout, layout.primary).foreign[KEY]
    if shares is not None and (shares.is_always or not (shares.dependent_keys or shares.claims)):
        shares = None
    query = Query(layout, visibility=visibility, consistent=consistent)
    plan = planner.plan_of_keys(query, (key,))
    (request,) = compile_plan(plan)
    params = {name: value for name, value in request.params.items() if name != "Key"}
    return Lookup(params, shares, _matcher(lower(plan.filter, layout)), reader_of(binding))


def _matcher(condition: Condition) -> Callable[[NewItem], bool]:
    """What tells whether an item meets a condition in stored names."""
    if condition == EVERYTHING:
        return lambda item: True
    careful = partial(matches, condition)
    if condition == missing_condition(names.DELETED_AT):
        return lambda item: names.DELETED_AT not in item or careful(item)
    return careful


def _range_of(key: ItemKey) -> KeyRange:
    return KeyRange(KeyCondition(key[0], "=", (key[1],)), key[1], KEY)


async def _found(queryset: StatefulQuerySet[Any], keys: Sequence[ItemKey]) -> list[tuple[ItemKey, Any]]:
    model = queryset.model
    layout, asked = registry.layout_of(model), queryset._asked
    await knowledge.ask(layout)
    query = Query(layout, visibility=asked.visibility, consistent=asked.consistent)
    plan = planner.plan_of_keys(query, keys, now=None if layout.expires is None else clock.instant())
    found = await batch_get.objects(model, get_table(layout.alias), plan)
    _tell(queryset, [obj for _, obj in found])
    return found


def _tell(queryset: StatefulQuerySet[Any], found: Sequence[Any]) -> None:
    mode = queryset._fetch_mode
    # The condition of ``mode_to_set()``, without a call.
    if mode.track_peers or mode is not BY_NAME[default_fetch_mode()]:
        set_modes(found, mode)


def _is_plain_query(queryset: StatefulQuerySet[DynamoModel]) -> bool:
    """Whether a queryset asks for objects as they are stored, and nothing of a project's stands between."""
    if queryset._iterable_class is not ObjectIterable or not _has_only_stock_methods(type(queryset)):
        return False
    asked = queryset._asked
    # Django's property carries a filter out that a related manager put off; it also notes what else is asked.
    query = queryset._query if queryset._deferred_filter is None else queryset.query
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
def _has_only_stock_methods(queryset_class: type[object]) -> bool:
    """Whether all that lies between a question and its objects is this app's or Django's own."""
    owners = owners_of(queryset_class, BETWEEN)
    return all(owner is None or owner.__module__.partition(".")[0] in _OURS for owner in owners)


Writer = Callable[[Mapping[str, object]], tuple[ItemKey, Values] | None]


@fact
def key_writer(binding: ModelBinding) -> Writer | None:
    """What writes the key that the arguments of ``get()`` give, and says which values it is made of.

    It returns ``None`` for arguments that are not the whole identity as it is stored. ``None`` for a model if equality
    with one of the attributes says less than a key does, a project reads a lookup's value, or the shard is not known.
    """
    model, layout = binding.model, binding.layout
    primary = layout.primary
    if primary.sharding is not None or lookups.identity_texts(model).intersection(layout.identity):
        return None
    attributes = registry.attributes_of(model)
    if not all(_is_looked_up_as_stored(attributes[name]) for name in layout.identity):
        return None
    checks = [(name, None if is_plain_text(attributes[name]) else attributes[name].prepare) for name in layout.identity]
    partition, sort = primary.partition.writer(PARTITION_KEY_LIMIT), primary.sort.writer(SORT_KEY_LIMIT)
    given_by = _given_by(model._meta.pk)
    asked = {*layout.identity}

    def write(given: Mapping[str, Any]) -> tuple[ItemKey, Values] | None:
        try:
            values = given_by(given["pk"]) if "pk" in given and len(given) == 1 else dict(given)
            if values is None or values.keys() != asked:
                return None
            for name, prepare in checks:
                value = values[name]
                if prepare is None:
                    if type(value) is not str:
                        return None
                elif type(prepared := prepare(value)) is not type(value) or prepared != value:
                    return None
            pk, sk = partition(values), sort(values)
        except InvalidValue:
            return None
        return None if pk is None or sk is None else ((pk, sk), values)

    return write


def _is_looked_up_as_stored(attribute: Attribute) -> bool:
    """Return whether a lookup's value is what the attribute stores: no method of a project changes or refuses it."""
    methods = ("lookup_value", "operand", "to_attribute_value", "encode")
    return are_plain(type(attribute), methods) and are_plain(type(attribute.field), ("get_prep_value",))


def _given_by(field: Any) -> Callable[[Any], Values | None]:
    """What gives the values of the identity that a ``pk`` is made of."""
    if isinstance(field, IdentityField):
        # What is split is spelled as the object's own pk, or an error.
        return lambda pk: field.split(pk) if type(pk) is str else None
    name = field.attname
    return lambda pk: {name: pk}
