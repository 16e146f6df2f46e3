"""Item collections: an object and its children in one partition, and objects read along with others.

``Children`` declares what lies beside an object. Where the children's partition is the object's own, one Query reads
everything; elsewhere Django's ``prefetch_related`` sends one query for each relation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from django.db import models
from django.db.models.fields.related_descriptors import ReverseManyToOneDescriptor, ReverseOneToOneDescriptor
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import NoAccessPattern, UnknownField
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import ITEM_TYPE, Compare
from dynamo_single.orm.items import hydration
from dynamo_single.orm.plan.constraints import gather
from dynamo_single.orm.plan.plan import KeyCondition, Plan
from dynamo_single.orm.reading import plans
from dynamo_single.orm.results.state import Along, QueryState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.children import Children
from dynamo_single.orm.schema.fields.fetching import mark
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.table import names
from dynamo_single.table.flow import Pages


class Member(Struct, frozen=True):
    """One kind of children in a collection."""

    model: type[DynamoModel]
    field: models.ForeignKey[Any, Any]
    forward: bool = True

    @property
    def item_type(self) -> str:
        """What the children's items are marked with."""
        return registry.layout_of(self.model).item_type


def members_of(state: QueryState, plan: Plan) -> Mapping[str, Member] | None:
    """The children that one Query reads together with the object of a plan; ``None`` if none are, or it takes several.

    Only objects have children, and these have to be the whole of the result.
    """
    asked, lookups = state.asked, state.along.prefetched
    if not lookups or asked.columns is not None or asked.computation is not None or state.window.start:
        return None
    if plan.kind != "get":
        return None
    found = {}
    for lookup in lookups:
        children = getattr(state.model, lookup, None) if isinstance(lookup, str) else None
        if not isinstance(children, Children) or not _shares_partition(state.layout, children):
            return None
        member = _member(plan, children)
        if member is None:
            return None
        found[children.name] = member
    return found


def _member(plan: Plan, children: Children) -> Member | None:
    """The children as their relation lists them, if it does so by reading the partition from one end to the other."""
    (identity,) = plan.layout.identity
    constraints = gather(plan.query.where, plan.layout)
    given = constraints.allowed.get(identity, ()) if constraints else ()
    queryset = children.queryset_of(given[0]) if len(given) == 1 else None
    if queryset is None:
        return None
    try:
        listing = queryset._plan()
    except NoAccessPattern:
        return None  # the relation itself will say why
    if listing.kind != "query" or listing.key is not listing.layout.primary:
        return None
    return Member(children.model, children.field, listing.forward)


def _shares_partition(own: ModelLayout, children: Children) -> bool:
    other = registry.layout_of(children.model)
    # The reference holds the whole pk: it is what the partition is made of only if the pk is this one value.
    of_pk = other.primary.partition.variables == (children.field.attname,) == own.identity
    together = own.primary.sharding is None is other.primary.sharding
    same = own.primary.partition.source == other.primary.partition.source
    return own.alias == other.alias and same and of_pk and together


def whole(plan: Plan, wanted: Mapping[str, Member]) -> Plan:
    """The plan that reads an object and its children together, in the place of the object's own."""
    ((partition, _),) = plan.keys
    types = (plan.layout.item_type, *(member.item_type for member in wanted.values()))
    return replace(
        plan,
        kind="query",
        conditions=(KeyCondition(partition),),
        keys=(),
        filter=Compare(ITEM_TYPE, "in", types),
        projection=(),  # the children are other models' items
        reason=f"the object is read together with its {', '.join(wanted)}",
    )


async def read(state: QueryState, plan: Plan, wanted: Mapping[str, Member]) -> Pages[Any]:
    """The object of a plan with its children: one Query a megabyte of its partition; nothing if it is missing."""
    ((_, sort),) = plan.keys
    model = state.model
    root: Any = None
    children: dict[str, list[Any]] = {name: [] for name in wanted}
    async with aclosing(plans.pages(state.table, whole(plan, wanted))) as pages:
        async for page in pages:
            for item in page:
                item_type = item[names.ITEM_TYPE]["S"]
                if item[names.SORT_KEY]["S"] == sort and item_type == plan.layout.item_type:
                    root = hydration.instance(model, item) if matches(plan.filter, item, plan.layout) else None
                for name, member in wanted.items():
                    if item_type == member.item_type and hydration.is_live(member.model, item):
                        children[name].append(hydration.instance(member.model, item))
    if root is None:
        return
    root._prefetched_objects_cache = {}
    for name, member in wanted.items():
        mark(children[name], state.along.mode)
        if not member.forward:
            children[name].reverse()
        for child in children[name]:
            member.field.set_cached_value(child, root)
        queryset = getattr(root, name).get_queryset()
        queryset._result_cache = children[name]
        queryset._prefetch_done = True
        root._prefetched_objects_cache[name] = queryset
    yield [root]


def check_references(model: type[DynamoModel], names: Sequence[object]) -> None:
    """Refuse names for ``select_related`` that are no references of the model, or of the one before."""
    for name in names:
        current: Any = model
        for step in str(name).split("__") if name is not None else ():
            references = {field.name: field for field in current._meta.concrete_fields if field.is_relation}
            if step not in references:
                known = ", ".join(sorted(references)) or "none"
                relation = getattr(current, step, None)
                several = isinstance(relation, Children | ReverseManyToOneDescriptor)
                advice = f" prefetch_related({name!r}) reads several objects along." if several else ""
                if isinstance(relation, ReverseOneToOneDescriptor):
                    advice = f" prefetch_related({name!r}) reads the objects that refer to these along, by a key."
                label = current._meta.label
                raise UnknownField(
                    f"select_related({name!r}): {label} has no reference {step!r}. It has {known}.{advice}"
                )
            current = references[step].related_model


def fetch(objects: Sequence[DynamoModel], along: Along) -> None:
    """Fill the references that ``select_related`` named: one BatchGetItem for each hundred of each reference.

    The objects know their fetch mode then, and each other if it asks for that.
    """
    mark(objects, along.mode)
    if objects and along.references:
        models.prefetch_related_objects(objects, *along.references)


def read_along(objects: Sequence[Any], along: Along) -> None:
    """Read what ``select_related`` and ``prefetch_related`` named, for some of the objects that are given."""
    fetch(objects, along)
    models.prefetch_related_objects(objects, *along.prefetched)
