"""Read objects by their complete primary keys, without Django's query and the planner, if there are no other options.

Any other query is planned, and the planner's path words its errors. Both paths send the same requests and find the same
objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from dynamo_single import clock
from dynamo_single.conf import default_fetch_mode
from dynamo_single.exceptions import BeginAgain, InvalidValue
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.lowering import lower, missing_condition
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition
from dynamo_single.orm.items.decode import page_objects, reader_of
from dynamo_single.orm.items.encode import Values
from dynamo_single.orm.items.page_readers import PageReader, single_reader
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
from dynamo_single.table.answers import TypedResponse, plain_response
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT, NewItem, Request
from dynamo_single.table.table import get_table

if TYPE_CHECKING:
    from dynamo_single.orm.items import batch_get
else:
    batch_get = LazyModule("dynamo_single.orm.items.batch_get")

_OURS = ("dynamo_single", "django")


#: Primary keys, each with the ``pk`` that it was made from and the values that it contains.
Keys = Mapping[ItemKey, tuple[Any, Values]]


def key_of_one(queryset: StatefulQuerySet[DynamoModel], given: Mapping[str, object]) -> ItemKey | None:
    """Return the primary key that the arguments of ``get()`` identify; ``None`` if the query must be planned."""
    write = key_writer(queryset.model) if _is_plain_query(queryset) else None
    found = None if write is None else write(given)
    return None if found is None else found[0]


def keys_of_several(queryset: StatefulQuerySet[DynamoModel], pks: Sequence[object]) -> Keys | None:
    """Return the distinct primary keys of objects with these ``pk``; ``None`` if the query must be planned."""
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
    """Return the objects with some keys by their ``pk``, in the order of the keys; sends what ``objects()`` sends."""
    return {_pk_of(obj, *keys[key]): obj for key, obj in await _found(queryset, tuple(keys))}


def _pk_of(obj: DynamoModel, pk: object, values: Values) -> Any:
    """Return the requested ``pk`` of an object, or its own ``pk`` if its attributes differ from its key."""
    return pk if values.items() <= obj.__dict__.items() else obj.pk


async def one(queryset: StatefulQuerySet[M], key: ItemKey) -> list[M]:
    """Return the object with a key, in a list that is empty if there is none; sends one GetItem."""
    model: Any = queryset.model
    asked, table = queryset._asked, get_table(model._options.alias)
    binding, compiled = binding_if_known(model, table), None
    if binding is not None and atomic_block.current() is None:
        compiled = lookup(binding, asked.visibility, asked.consistent)
    if compiled is None or (compiled.shares is not None and not compiled.decides(key)):
        return [obj for _, obj in await _found(queryset, (key,))]
    reader = compiled.reader
    written = {names.PARTITION_KEY: {"S": key[0]}, names.SORT_KEY: {"S": key[1]}}
    request = Request("GetItem", {"Key": written, **compiled.params}, compiled.lease)
    try:
        answer = await table.ask(request, None if reader is None else reader.form)
    except BeginAgain:
        knowledge.stale()
        return [obj for _, obj in await _found(queryset, (key,))]
    found = None
    if reader is not None and type(answer) is TypedResponse:
        found = page_objects(reader, (answer.typed,))
    if found is None:
        item = plain_response(answer).get("Item")
        found = [compiled.make(item)] if item is not None and compiled.is_wanted(item) else []
    _tell(queryset, found)
    return found


class Lookup(Struct, frozen=True, eq=False):
    """How to read an object by its whole key: the request without the key, and how to make the object.

    ``shares`` returns whether other models may have a key too. It is ``None`` if this does not depend on the key.
    ``condition`` is the condition on an item, in stored names. ``reader`` makes an object that meets it of the
    response. Without one, or for an unusual item, ``make`` makes the object of the item.
    """

    params: Mapping[str, object]
    shares: Sharing | None
    condition: Condition
    is_wanted: Callable[[NewItem], bool]
    make: Callable[[NewItem], Any]
    lease: Lease | None
    reader: PageReader | None

    def decides(self, key: ItemKey) -> bool:
        """Return whether the item of this key can be read without looking at other models."""
        return self.shares is None or not self.shares.applies((_range_of(key),))


@fact
def lookup(binding: ModelBinding, visibility: Visibility, consistent: bool) -> Lookup | None:
    """Return the lookup of a model; ``None`` while an attribute is being renamed, and if the model's items expire."""
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
    condition = lower(plan.filter, layout)
    reader = _reader(binding, condition)
    return Lookup(params, shares, condition, _matcher(condition), reader_of(binding), binding.lease, reader)


def _reader(binding: ModelBinding, condition: Condition) -> PageReader | None:
    """Return what makes an object that meets a condition of a response; ``None`` if only the item shows this."""
    if binding.model._has_from_db or condition not in (EVERYTHING, _LIVE):
        return None
    return single_reader(binding, "" if condition == EVERYTHING else names.DELETED_AT)


_LIVE: Final = missing_condition(names.DELETED_AT)


def _matcher(condition: Condition) -> Callable[[NewItem], bool]:
    """Return a function that checks a condition in stored names on an item."""
    if condition == EVERYTHING:
        return lambda item: True
    careful = partial(matches, condition)
    if condition == _LIVE:
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


class KeyFilter(Struct, frozen=True, eq=False):
    """The key that the only filter of a queryset identifies, and the binding that rendered it."""

    key: ItemKey
    binding: ModelBinding


def is_key_filter(queryset: StatefulQuerySet[DynamoModel], kwargs: Mapping[str, object]) -> bool:
    """Return whether a filter identifies one object of a queryset without other options."""
    if not _is_plain_query(queryset) or (write := key_writer(queryset.model)) is None:
        return False
    return write(kwargs) is not None


def key_filter(queryset: StatefulQuerySet[DynamoModel]) -> KeyFilter | None:
    """Return the key of a queryset whose only filter is a deferred one; ``None`` if the query has to be planned."""
    negated, args, kwargs = queryset._deferred_filter
    model: Any = queryset.model
    binding = binding_if_known(model, get_table(model._options.alias))
    if negated or args or binding is None or not _is_plain_query(queryset, deferred=True):
        return None
    write = key_writer(binding)
    found = None if write is None else write(kwargs)
    return None if found is None else KeyFilter(found[0], binding)


def _is_plain_query(queryset: StatefulQuerySet[DynamoModel], *, deferred: bool = False) -> bool:
    """Return whether a queryset requests only whole objects, without methods that a project overrides.

    With ``deferred``, a filter that Django has not built yet does not count.
    """
    if queryset._iterable_class is not ObjectIterable or not _has_only_stock_methods(type(queryset)):
        return False
    if queryset._deferred_filter is not None and not deferred:
        return False
    asked, query = queryset._asked, queryset._query
    # Without soft delete there are no deleted objects, so no request is needed.
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
    """Return whether all methods between a queryset and its objects are this app's or Django's."""
    owners = owners_of(queryset_class, BETWEEN)
    return all(owner is None or owner.__module__.partition(".")[0] in _OURS for owner in owners)


Writer = Callable[[Mapping[str, object]], tuple[ItemKey, Values] | None]


@fact
def key_writer(binding: ModelBinding) -> Writer | None:
    """Return a function from the arguments of ``get()`` to the key and its values.

    The function returns ``None`` unless the arguments are the complete identity in its stored form. A model has no such
    function if its primary key is sharded, if a comparison with the identity is less strict than a key, or if a project
    converts values.
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
    # A joined identity is accepted only as it is spelled, so its values are in the stored form.
    pk_checks = [] if isinstance(model._meta.pk, IdentityField) else checks
    asked = {*layout.identity}

    def write(given: Mapping[str, Any]) -> tuple[ItemKey, Values] | None:
        try:
            by_pk = "pk" in given and len(given) == 1
            values = given_by(given["pk"]) if by_pk else dict(given)
            if values is None or values.keys() != asked:
                return None
            for name, prepare in pk_checks if by_pk else checks:
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
    """Return whether a lookup takes the value as stored: no method of a project changes or rejects it."""
    methods = ("lookup_value", "operand", "to_attribute_value", "encode")
    return are_plain(type(attribute), methods) and are_plain(type(attribute.field), ("get_prep_value",))


def _given_by(field: Any) -> Callable[[Any], Values | None]:
    """Return a function from a ``pk`` to the values of the identity."""
    if isinstance(field, IdentityField):
        # split() accepts a string only if it equals the object's own pk.
        return lambda pk: field.split(pk) if type(pk) is str else None
    name = field.attname
    return lambda pk: {name: pk}
