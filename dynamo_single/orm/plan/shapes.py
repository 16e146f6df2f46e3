"""Plans by the shape of a query: the attributes it compares and its order, but not the values.

The app plans a shape once per binding, with placeholder values. If the plan does not depend on them, each query of the
shape reuses it with its own values: only the key's templates are rendered. It plans unusual queries individually.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.orm.conditions.terms import EVERYTHING, And, Compare, Condition, Order
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.choice import unexpired_condition
from dynamo_single.orm.plan.neighbours import KEY, PARTITION, Shape, neighbours
from dynamo_single.orm.plan.plan import KeyCondition, Plan, Query, Visibility
from dynamo_single.orm.plan.unique_lookups import Lookup
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.scalars import is_plain_text
from dynamo_single.orm.schema.bindings import ModelBinding, binding_of, fact
from dynamo_single.orm.schema.identities import example_value_of
from dynamo_single.orm.schema.keys.codecs import LAST
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT

Values = Mapping[str, Any]
#: A function that encodes a string of a key; returns ``None`` if a part is empty or the string too long.
Writer = Callable[[Values], str | None]

#: The bytes of a sort key that a range has room for after it.
_SORT_LIMIT: Final = SORT_KEY_LIMIT - len(LAST.encode())
#: A placeholder for the current time in the plan of a shape.
_SOME_TIME: Final = clock.EPOCH


class PlanShape(Struct, frozen=True, eq=False):
    """A plan, and the functions that adapt it to other values.

    ``checks`` raise an error for a value that cannot be compared; a string in a key needs none. ``keys`` write a
    partition and the beginning of a sort key: the first pair is the plan's, the others belong to alternative keys.
    ``terms`` are the conditions of the filter: the name of an attribute that is compared with a value of the query,
    ``None`` for the time to live, or a condition without values.
    """

    plan: Plan
    checks: tuple[tuple[str, Callable[[Any], object] | None], ...]
    keys: tuple[tuple[Writer, Writer], ...]
    terms: tuple[str | Condition | None, ...]
    has_values: bool

    def of(self, query: Query, values: Values, now: object) -> Plan | None:
        """Return the plan of a query; ``None`` if one of its values is not as usual."""
        try:
            for name, check in self.checks:
                value = values[name]
                if not (type(value) is str and value) if check is None else value is None or value == "":
                    return None
                if check is not None:
                    check(value)
            texts = [(partition(values), sort(values)) for partition, sort in self.keys]
        except Exception:
            return None  # a project's attribute may raise anything; the planner decides
        if any(None in each for each in texts):
            return None
        found, (partition, sort) = self.plan, texts[0]
        filter = self._filter(query.layout, values, now) if self.has_values else found.filter
        if found.keys:
            return replace(found, query=query, keys=((partition, sort),), filter=filter)
        (condition,) = found.conditions
        operands = (sort or "",) if condition.operands else ()
        read = KeyCondition(partition or "", condition.operator, operands)
        return replace(found, query=query, conditions=(read,), filter=filter)

    def _filter(self, layout: ModelLayout, values: Values, now: object) -> Condition:
        found: list[Condition] = []
        for term in self.terms:
            if term is None:
                found.extend(unexpired_condition(layout, now))
            else:
                found.append(Compare(term, "exact", values[term]) if isinstance(term, str) else term)
        return And(tuple(found)) if len(found) > 1 else found[0]


def plan(query: Query, *, now: object = None) -> Plan:
    """Find the plan of a query, like ``planner.plan()`` does."""
    values = _values(query)
    if values is not None:
        binding = binding_of(registry.model_of(query.layout))
        if binding.layout is query.layout:
            names, asked = tuple(values), (query.using_index, query.consistent, query.allow_scan, query.in_pages)
            found = shape_of(binding, names, query.ordering, query.visibility, query.without, *asked)
            made = None if found is None else found.of(query, values, now)
            if made is not None:
                return made
    return planner.plan(query, now=now)


def _values(query: Query) -> Values | None:
    """Return the required values of attributes, if there are no other conditions."""
    if query.missing_keys or query.missing_attributes or query.missing_rules or query.schedule is not None:
        return None
    where = query.where
    terms = where.children if type(where) is And else (where,)
    values = {}
    for term in terms:
        if type(term) is not Compare or term.operator != "exact" or term.path:
            return None
        values[term.attribute] = term.value
    if len(values) != len(terms) or any(not values.keys().isdisjoint(_decides(each)) for each in query.lookups):
        return None
    return values


def _decides(lookup: Lookup) -> Iterable[str]:
    """The attributes whose values decide about the claim of a unique value."""
    return (*lookup.fields, *lookup.copies.values())


@fact
def shape_of(
    binding: ModelBinding,
    names: tuple[str, ...],
    ordering: tuple[Order, ...],
    visibility: Visibility,
    without: tuple[str, ...],
    using_index: str | None,
    consistent: bool,
    allow_scan: bool,
    in_pages: bool,
) -> PlanShape | None:
    """The shape of queries for some attributes' values; ``None`` if how they are read may depend on the values."""
    layout, attributes = binding.layout, registry.attributes_of(binding.model)
    if binding.rollout is not None or layout.sharding is not None or not attributes.keys() >= {*names}:
        return None
    if not all(layout.attributes[name].kind for name in names) or _has_condition_on(layout, names):
        return None
    now = None if layout.expires is None else _SOME_TIME
    try:
        values = {name: example_value_of(attributes[name]) for name in names}
        where = And(tuple([Compare(name, "exact", value) for name, value in values.items()]))
        query = Query(
            layout, where, ordering, visibility, using_index, consistent, allow_scan, without, in_pages=in_pages
        )
        found = planner.plan(query, now=now)
    except Exception:
        return None  # an example may be none of the values that a project's attribute takes
    key = found.key
    if key is None or not _is_of_one_range(found) or _depends(layout, key, found, names):
        return None
    written, keys = _written(layout, key, names)
    texts = {name for name in written if is_plain_text(attributes[name])}
    checks = [(name, None if name in texts else layout.attributes[name].serialize) for name in names]
    terms = _terms(found.filter, names, layout, now)
    has_values = any(term is None or isinstance(term, str) for term in terms)
    made = PlanShape(found, tuple(checks), keys, terms, has_values)
    return made if made.of(query, values, now) == found else None


def _has_condition_on(layout: ModelLayout, names: Iterable[str]) -> bool:
    """Return whether an index contains only objects with some values of the attributes, which a query may set."""
    conditions = (key.condition for key in layout.indexes)
    return any(each is not None and not {*each.attributes}.isdisjoint(names) for each in conditions)


def _is_of_one_range(plan: Plan) -> bool:
    """Return whether one GetItem or one Query reads everything, without processing of the items."""
    ranges = plan.keys if plan.kind == "get" else plan.conditions if plan.kind == "query" else ()
    return len(ranges) == 1 and not (plan.parts or plan.exclusions or plan.lookup or plan.in_memory or plan.merged_by)


def _given(key: AccessKey, names: Iterable[str]) -> int:
    """Return the number of leading values of the sort key."""
    missing = [place for place, part in enumerate(key.sort.parts) if part.name not in names]
    return min(missing, default=len(key.sort.parts))


def _depends(layout: ModelLayout, key: AccessKey, plan: Plan, names: tuple[str, ...]) -> bool:
    """Return whether other items in the range depend on the values."""
    near, given = neighbours(layout, key), _given(key, names)
    shapes = {KEY if given == len(key.sort.parts) else Shape("prefix", given), *(() if given else (PARTITION,))}
    sharings = [some[shape] for some in (near.foreign, near.own, near.opposite) for shape in shapes if shape in some]
    return any(not each.is_always and (each.dependent_keys or each.claims) for each in sharings)


def _written(
    layout: ModelLayout, key: AccessKey, names: tuple[str, ...]
) -> tuple[set[str], tuple[tuple[Writer, Writer], ...]]:
    """Return the attributes whose values are encoded, and the encoders of the keys: the first is the plan's."""
    keys = (*layout.keys, *(() if layout.trash is None else (layout.trash,)))
    weighed = [each for each in keys if {part.name for part in each.partition.parts} <= {*names} and each is not key]
    written: set[str] = set()
    writers = []
    for each in (key, *weighed):
        given = _given(each, names)
        written.update(part.name for part in (*each.partition.parts, *each.sort.parts[:given]))
        writers.append((each.partition.writer(PARTITION_KEY_LIMIT), each.sort.writer(_SORT_LIMIT, given)))
    return written, tuple(writers)


def _terms(
    filter: Condition, names: tuple[str, ...], layout: ModelLayout, now: object
) -> tuple[str | Condition | None, ...]:
    """The conditions of a filter as a shape has them."""
    expiry = unexpired_condition(layout, now)
    found: list[str | Condition | None] = []
    for term in () if filter == EVERYTHING else filter.children if isinstance(filter, And) else (filter,):
        if term in expiry:
            found.append(None)
        elif isinstance(term, Compare) and term.operator == "exact" and term.attribute in names:
            found.append(term.attribute)
        else:
            found.append(term)
    return tuple(found)
