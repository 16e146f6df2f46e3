"""Read related objects: item collections, and the references of ``select_related``.

``Children`` declares the kinds of objects in an object's partition. One Query reads an object and the children in its
partition; for other children Django's ``prefetch_related`` sends one query for each relation.
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
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import ITEM_TYPE, Compare, Condition
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import pk_of
from dynamo_single.orm.plan.candidates import complete_references
from dynamo_single.orm.plan.constraints import constraints_of
from dynamo_single.orm.plan.plan import KeyCondition, Plan, attributes_of
from dynamo_single.orm.reading import execute
from dynamo_single.orm.results.state import QueryState
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.fetching import set_modes
from dynamo_single.orm.schema.identities import example_value_of
from dynamo_single.orm.schema.keys.template import SEPARATOR, prefix_end
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.orm.schema.references import Children
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.flow import Pages


class CollectionMember(Struct, frozen=True):
    """One kind of children in a collection: what their own Query reads, and which of it are they.

    ``lies_by`` contains the positions of the collection's identity in a child's identity, from the outside in. Children
    of children are found by their reference, and have no ``condition``.
    """

    model: type[DynamoModel]
    field: models.ForeignKey[Any, Any]
    condition: KeyCondition | None
    filter: Condition
    forward: bool = True
    lies_by: tuple[int, ...] = ()

    @property
    def item_type(self) -> str:
        """The item type of the children."""
        return registry.layout_of(self.model).item_type

    def takes(self, item: decode.Item) -> bool:
        """Return whether an item of the partition belongs to this kind."""
        return (
            item[names.ITEM_TYPE]["S"] == self.item_type
            and (self.condition is None or self.condition.includes(item[names.SORT_KEY]["S"]))
            and matches(self.filter, item)
            and decode.is_live(self.model, item)
        )


def members_of(state: QueryState, plan: Plan) -> Mapping[str, CollectionMember]:
    """The children that one Query reads together with the object of a plan; the app reads the others separately.

    Only objects have children, and these have to be the whole of the result.
    """
    asked, lookups = state.asked, state.related_reads.prefetch_related
    if not lookups or asked.columns is not None or asked.computation is not None or state.window.start:
        return {}
    pk = _pk_of(plan) if plan.kind == "get" and plan.layout.primary.sharding is None else None
    if pk is None:
        return {}
    found: dict[str, CollectionMember] = {}
    # A relation with its own queryset uses that.
    others = {each.prefetch_through for each in lookups if not isinstance(each, str)}
    for lookup in lookups:
        path, model, above = "", state.model, None
        for step in lookup.split("__") if isinstance(lookup, str) else ():
            children, path = getattr(model, step, None), f"{path}__{step}" if path else step
            if not isinstance(children, Children) or path in others:
                break
            member = found.get(path)
            if member is None:
                member = _member(plan, children, pk) if above is None else _member_below(plan, above, children, pk)
            if member is None:
                break
            found[path], model, above = member, member.model, member
    return found


def _pk_of(plan: Plan) -> Any:
    """Return the ``pk`` of the object that a plan reads by its key; ``None`` if its values were converted."""
    constraints = constraints_of(plan.query.where, plan.layout)
    allowed = {} if constraints is None else constraints.allowed
    given = {name: allowed.get(name, ()) for name in plan.layout.identity}
    if any(len(values) != 1 for values in given.values()):
        return None
    return pk_of(registry.model_of(plan.layout), {name: values[0] for name, values in given.items()})


def _member(plan: Plan, children: Children, pk: object) -> CollectionMember | None:
    """Return the children in their relation's order, if one Query around the object itself reads them."""
    listing = _children_plan(plan, children, pk)
    if listing is None:
        return None
    (condition,) = listing.conditions
    if not (_is_own(plan.layout) or _is_below(plan, condition)):
        return None
    filter_, lies_by = lower(listing.filter, listing.layout), _shared_positions(children, ())
    return CollectionMember(children.model, children.field, condition, filter_, listing.forward, lies_by)


def _member_below(plan: Plan, above: CollectionMember, children: Children, pk: object) -> CollectionMember | None:
    """Children of children, if their partition is made of the collection's object alone, whatever is between them."""
    model: Any = above.model
    if not _is_own(plan.layout) or above.field.attname not in model._identity:
        return None
    attributes = registry.attributes_of(model)
    # The other values do not matter, because the partition does not contain them.
    given = {
        name: pk if name == above.field.attname else example_value_of(attributes[name]) for name in model._identity
    }
    listing = _children_plan(plan, children, pk_of(model, given))
    if listing is None or children.field.attname in attributes_of(listing.filter):
        return None
    for part in listing.layout.primary.partition.parts:
        if part.name != children.field.attname or part.bound.member[: len(above.lies_by)] != above.lies_by:
            return None
    filter_, lies_by = lower(listing.filter, listing.layout), _shared_positions(children, above.lies_by)
    return CollectionMember(children.model, children.field, None, filter_, listing.forward, lies_by)


def _shared_positions(children: Children, above: tuple[int, ...]) -> tuple[int, ...]:
    """Return the position of the collection's identity in a child's identity, if there is one."""
    identity: tuple[str, ...] = children.model._identity
    if len(identity) == 1 or children.field.attname not in identity:
        return above
    return (identity.index(children.field.attname), *above)


def _children_plan(plan: Plan, children: Children, pk: object) -> Plan | None:
    """Return how to list the children of the object with a ``pk``, if one Query of the plan's partition reads them."""
    queryset = children.queryset_of(pk)
    if queryset is None or registry.layout_of(children.model).alias != plan.layout.alias:
        return None
    try:
        listing: Plan = queryset._plan()
    except NoAccessPattern:
        return None  # the relation itself will explain it
    by_table = listing.kind == "query" and listing.key is listing.layout.primary
    if not by_table or listing.is_sharded or len(listing.conditions) != 1:
        return None
    ((partition, _),) = plan.keys
    return listing if listing.conditions[0].partition == partition else None


def listing_of(state: QueryState, lookup: object) -> Any:
    """Return the queryset of the children of one object that a prefetch names, if one Query of their partition lists
    them; ``None`` if the objects decide what is read."""
    children = getattr(state.model, lookup, None) if isinstance(lookup, str) else None
    if not isinstance(children, Children):
        return None
    queryset = children.queryset_of(example_value_of(children.field.attribute))
    try:
        listing: Plan | None = None if queryset is None else queryset._plan()
    except NoAccessPattern:
        return None  # the read will explain it
    partition = () if listing is None or listing.key is None else listing.key.partition.variables
    return queryset if listing and listing.kind == "query" and children.field.attname in partition else None


def _is_own(layout: ModelLayout) -> bool:
    """Return whether each object of a model has a partition of its own."""
    parts = layout.primary.partition.parts
    return {part.name for part in parts if part.bound.exact} | complete_references(parts) >= {*layout.identity}


def _is_below(plan: Plan, condition: KeyCondition) -> bool:
    """Return whether the keys of children extend the complete key of the object: ``DEPT#d`` and ``DEPT#d#EMP#``."""
    template = plan.layout.primary.sort
    begins = condition.operator == "begins_with" and bool(template.parts)
    return begins and condition.operands[0].startswith(_key_prefix(plan) + SEPARATOR)


def collection_plan(plan: Plan, wanted: Mapping[str, CollectionMember]) -> Plan:
    """Return the plan that reads an object and its children together."""
    ((partition, sort),) = plan.keys
    types = (plan.layout.item_type, *dict.fromkeys(member.item_type for member in wanted.values()))
    condition = KeyCondition(partition)
    if not _is_own(plan.layout):
        ranges = [member.condition for member in wanted.values() if member.condition is not None]
        ends = [prefix_end(each.operands[0]) for each in ranges]
        condition = KeyCondition(partition, "between", (_key_prefix(plan), max(sort, *ends)))
    return replace(
        plan,
        kind="query",
        conditions=(condition,),
        keys=(),
        filter=Compare(ITEM_TYPE, "in", types),
        projection=(),  # the children are other models' items
        reason=f"one Query reads the object and its {', '.join(wanted)}",
    )


def _key_prefix(plan: Plan) -> str:
    """Return the prefix of the keys of an object and of everything below it."""
    ((_, sort),) = plan.keys
    return sort.removesuffix(plan.layout.primary.sort.tail)


async def read_collection(state: QueryState, plan: Plan, wanted: Mapping[str, CollectionMember]) -> Pages[Any]:
    """Read an object and its children: one Query for each megabyte of the partition; empty if the object is missing."""
    ((_, sort),) = plan.keys
    model = state.model
    root: Any = None
    children: dict[str, list[Any]] = {name: [] for name in wanted}
    for member in wanted.values():
        await knowledge.ask(registry.layout_of(member.model))
    async with aclosing(execute.pages(state.table, collection_plan(plan, wanted))) as pages:
        async for page in pages:
            for item in page:
                item_type = item[names.ITEM_TYPE]["S"]
                if item[names.SORT_KEY]["S"] == sort and item_type == plan.layout.item_type:
                    root = decode.instance(model, item) if matches(plan.filter, item, plan.layout) else None
                for name, member in wanted.items():
                    if member.takes(item):
                        children[name].append(decode.instance(member.model, item))
    if root is None:
        return
    _assign_children(root, children, wanted, state.related_reads.mode)
    yield [root]


def _assign_children(
    root: object, children: Mapping[str, list[Any]], wanted: Mapping[str, CollectionMember], mode: Any
) -> None:
    """Assign the children of a collection to their parents, top down."""
    for path, member in wanted.items():
        set_modes(children[path], mode)
        if not member.forward:
            children[path].reverse()
        before, _, name = path.rpartition("__")
        if not before:
            _assign_to_parent(root, name, member, children[path])
            continue
        own: dict[Any, list[Any]] = {}
        for child in children[path]:
            own.setdefault(getattr(child, member.field.attname), []).append(child)
        for parent in children[before]:
            _assign_to_parent(parent, name, member, own.get(parent.pk, []))


def _assign_to_parent(parent: Any, name: str, member: CollectionMember, children: list[Any]) -> None:
    """Assign children to an object, and the object to its children."""
    for child in children:
        member.field.set_cached_value(child, parent)
    queryset = getattr(parent, name).get_queryset()
    queryset._result_cache = children
    queryset._prefetch_done = True
    parent.__dict__.setdefault("_prefetched_objects_cache", {})[name] = queryset


def check_references(model: type[DynamoModel], names: Sequence[object]) -> None:
    """Raise an error for names in ``select_related`` that are not references."""
    for name in names:
        current: Any = model
        for step in str(name).split("__") if name is not None else ():
            references = {field.name: field for field in current._meta.concrete_fields if field.is_relation}
            if step not in references:
                known = ", ".join(sorted(references)) or "no references"
                relation = getattr(current, step, None)
                several = isinstance(relation, Children | ReverseManyToOneDescriptor)
                advice = f" prefetch_related({name!r}) fetches several objects." if several else ""
                if isinstance(relation, ReverseOneToOneDescriptor):
                    advice = f" prefetch_related({name!r}) fetches the objects that refer to these, by a key."
                label = current._meta.label
                raise UnknownField(
                    f"select_related({name!r}): {label} has no reference {step!r}. It has {known}.{advice}"
                )
            current = references[step].related_model
