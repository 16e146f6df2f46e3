"""What DynamoDB cannot put in order is sorted here, among as many matches as the caller allowed, and no more.

Nothing is cut off: one match too many is an error. This module must not know groups, aggregates or columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from django.db.models.expressions import OrderBy

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue, NoAccessPattern, NotSupported, TooManyMatches
from dynamo_single.orm.items import hydration
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.plan import InMemory, Plan, Sort
from dynamo_single.orm.reading import plans
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute, JSONAttribute
from dynamo_single.orm.where import tree

#: How many matches ``allow_in_memory()`` allows if it is not told.
DEFAULT_LIMIT = 1000
_ORDERED_TYPES = ("S", "N", "B", "BOOL")
#: The kinds of plans whose matches the caller has listed by their keys.
_LISTED = ("empty", "get", "batch_get")

Item = dict[str, dict[str, Any]]


def checked_limit(limit: Any) -> int:
    """Refuse a limit that is no number of matches."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidValue(f"allow_in_memory(limit=...) takes the most matches to work on, from 1 up, not {limit!r}.")
    return limit


def plan(queryset: Any) -> Plan:
    """The plan of a queryset: in the order of a key if one serves it, else sorted in memory if that was allowed."""
    limit = queryset._in_memory
    if limit is None:
        return queryset._plan()  # type: ignore[no-any-return]  # querysets import this module
    sorting = read_sorting(queryset.model, queryset._ordered_by())
    if all(sort.missing_first is None for sort in sorting):
        try:
            return queryset._plan()  # type: ignore[no-any-return]  # as above
        except NoAccessPattern:
            if not sorting:
                raise
    for sort in sorting:
        check_orderable(queryset.model, sort.attribute, "order_by()")
    backwards = not queryset.query.standard_ordering
    return queryset._projected(replace(unordered(queryset), in_memory=InMemory(limit, sorting, backwards)))  # type: ignore[no-any-return]  # as above


def unordered(queryset: Any) -> Plan:
    """The plan that finds what a queryset asks for, in any order, and reads it whole."""
    return planner.plan(queryset._query_value(ordered=False), now=clock.now())


def items(queryset: Any, plan: Plan) -> Iterator[Item]:
    """What a queryset's plan finds, in order, from the beginning to the end of the queryset's slice."""
    start, stop = queryset.query.low_mark, queryset.query.high_mark
    if plan.in_memory is None:
        return plans.items(queryset._table, plan, skip=start, stop=stop)
    readers = {sort.attribute: hydration.value_reader(queryset.model, sort.attribute) for sort in _sorting(plan)}
    found = list(matches(queryset, plan, plan.in_memory.limit))
    put_in_order(found, plan.in_memory, lambda item, name: readers[name](item))
    return islice(found, start, stop)


def _sorting(plan: Plan) -> tuple[Sort, ...]:
    return plan.in_memory.ordering if plan.in_memory else ()


def page_limit(plan: Plan, limit: int | None) -> int | None:
    """How many items a plan's request may read before it is known that too many match, if that can be said."""
    # Where a filter drops items, a Limit would only make more and smaller pages of the same reading.
    return limit + 1 if limit is not None and plans.limit_is_exact(plan) else None


def matches(queryset: Any, plan: Plan, limit: int | None) -> Iterator[Item]:
    """Every match of a plan, in the plan's own order; ``TooManyMatches`` instead of the one behind the limit."""
    return checked(queryset, plans.items(queryset._table, plan, stop=page_limit(plan, limit)), limit)


def checked(queryset: Any, found: Iterator[Item], limit: int | None) -> Iterator[Item]:
    """The same items; ``TooManyMatches`` instead of the one behind the limit."""
    for number, item in enumerate(found):
        if limit is not None and number >= limit:
            label = queryset.model._meta.label
            raise TooManyMatches(
                f"{label}: more than {limit} objects match, and allow_in_memory(limit={limit}) was said. Nothing was "
                "cut off, so there is no result. Ask for fewer objects, allow more, or add a key that answers this.",
                limit=limit,
            )
        yield item


def limit_of(queryset: Any, plan: Plan, what: str, *, sliced: bool) -> int | None:
    """The most matches that may be worked on; ``None`` if something else bounds them, and an error if nothing does.

    ``sliced`` says that the queryset's slice is one of matches.
    """
    limit: int | None = queryset._in_memory
    if limit is not None:
        return limit
    if plan.kind in _LISTED or plan.single or (sliced and queryset.query.high_mark is not None):
        return None
    slicing = ", or slice: queryset[:100]" if sliced else ""
    raise NotSupported(
        f"{queryset.model._meta.label}: {what}: DynamoDB does not compute that, so every match would have to be read, "
        f"and nothing says how many there are. Say how many at most: .allow_in_memory(limit={DEFAULT_LIMIT}){slicing}."
    )


def read_sorting(model: Any, names: Sequence[Any]) -> tuple[Sort, ...]:
    """The order of ``order_by()`` or ``Meta.ordering``, with where missing values go if that was said and matters."""
    found: dict[str, Sort] = {}
    for name in names:
        plain = without_missing(model, name)
        missing_first = None
        if isinstance(plain, OrderBy) and (plain.nulls_first or plain.nulls_last):
            missing_first, plain = bool(plain.nulls_first), OrderBy(plain.expression, descending=plain.descending)
        for order in tree.read_ordering(model, (plain,)):
            found.setdefault(order.attribute, Sort(order.attribute, order.descending, missing_first))
    return tuple(found.values())


def without_missing(model: Any, name: Any) -> Any:
    """What an order is by; where missing values go is left out if no item lacks the attribute."""
    if not isinstance(name, OrderBy) or not (name.nulls_first or name.nulls_last):
        return name
    plain = OrderBy(name.expression, descending=name.descending)
    attributes = registry.layout_of(model).attributes
    required = all(attributes[order.attribute].required for order in tree.read_ordering(model, (plain,)))
    return plain if required else name


def check_orderable(model: Any, name: str, what: str) -> None:
    """Refuse values that have no order: documents, sets and JSON."""
    attribute: Attribute[Any] = registry.attributes_of(model)[name]
    if isinstance(attribute, JSONAttribute) or attribute.attr_type not in _ORDERED_TYPES:
        raise NotSupported(
            f"{model._meta.label}: {what} cannot take {name}, a {type(attribute).__name__}: its values have no order. "
            "Keep what is to be compared in an attribute of its own."
        )


def put_in_order(found: list[Any], how: InMemory, value: Callable[[Any, str], Any]) -> None:
    """Sort a list in place; ``value`` gives what one of its members has under a name.

    Text is ordered by its code points, as DynamoDB does, which is the order of its UTF-8 bytes.
    """
    for sort in reversed(how.ordering):
        found.sort(key=_sort_key(sort, value), reverse=sort.descending)
    if how.backwards:
        found.reverse()


def _sort_key(sort: Sort, value: Callable[[Any, str], Any]) -> Callable[[Any], tuple[Any, ...]]:
    first = not sort.descending if sort.missing_first is None else sort.missing_first
    missing = (0,) if first != sort.descending else (2,)

    def key(member: Any) -> tuple[Any, ...]:
        own = value(member, sort.attribute)
        return missing if own is None else (1, own)

    return key
