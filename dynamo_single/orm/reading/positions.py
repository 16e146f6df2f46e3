"""Positions in the order of a plan: the boundary between two pages, and how reading continues from there.

The order of a plan is that of its streams: the key conditions of a query, the keys of a batch_get, or the single stream
of a Scan; a union has the streams of its parts. One item determines a position, so any item has one, and reading can
continue from it in both directions. A union with an order narrows its parts to the items after a position. This module
does not send requests or depend on models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import Compare, Condition, conjuncts, join, simplify
from dynamo_single.orm.plan.choice import plan_of_one_key
from dynamo_single.orm.plan.constraints import constraints_of
from dynamo_single.orm.plan.plan import KeyCondition, Plan, attributes_of
from dynamo_single.orm.reading.single import plan_key_of
from dynamo_single.orm.reading.sources import sort_attribute
from dynamo_single.orm.requests.actions import ItemKey, key_of
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.schema.keys.template import prefix_end
from dynamo_single.table import names
from dynamo_single.table.request import Item


class Position(Struct, frozen=True):
    """The position of an item in a stream, by its sort key and its primary key; without ``key``, before the stream.

    Another process may have deleted the item since then. Streams have their numbers in the plan, in either direction.
    In a union that has an order, ``values`` contains the stored values that the item is ordered by.
    """

    stream: int
    sort: str = ""
    key: ItemKey | None = None
    values: tuple[Mapping[str, Any], ...] = ()


class StreamStart(Struct, frozen=True):
    """The read of a stream from a position; it ``overlaps`` if the first items may be at the position itself."""

    condition: KeyCondition | None = None
    key: Mapping[str, Mapping[str, str]] | None = None
    overlaps: bool = False


def parts_of(plan: Plan) -> tuple[Plan, ...]:
    """Return the parts of a union, or the plan itself."""
    return plan.parts if plan.kind == "union" else (plan,)


def stream_count(plan: Plan) -> int:
    """Return the number of streams of a plan; a Scan has one."""
    if plan.kind == "union":
        return sum(map(stream_count, plan.parts))
    return 1 if plan.kind == "scan" else len(plan.keys or plan.conditions)


def part_position(part: Plan, offset: int, position: Position) -> Position:
    """Return a position within a part of a union, which follows ``offset`` streams."""
    stream, count = position.stream - offset, stream_count(part)
    if 0 <= stream < count:
        return replace(position, stream=stream)
    return Position(0 if stream < 0 else count)


def first_position(plan: Plan, *, backward: bool) -> Position:
    """Return the position where reading begins: before all items, or after them."""
    return Position(stream_count(plan) if backward else 0)


def is_ascending(plan: Plan, *, backward: bool) -> bool:
    """Return whether sort keys ascend when the app reads the plan in this direction."""
    return plan.forward != backward


def is_merged(plan: Plan) -> bool:
    """Return whether the app merges the streams rather than reads them sequentially."""
    if plan.kind == "union":
        return bool(plan.merged_by)
    return plan.merge == "sort_key" and len(plan.conditions) > 1


def position_of_item(plan: Plan, stream: int, item: Item) -> Position:
    """Return the position of an item, or of a ``LastEvaluatedKey``, of a stream; each key is a separate stream."""
    return Position(stream, "" if plan.keys else item[sort_attribute(plan)]["S"], key_of(item))


def at(plan: Plan, stream: int, item: Item) -> Position:
    """Return the position of an item that a stream of a plan returned; in a union it has a place in the order."""
    offset = 0
    for part in parts_of(plan):
        if stream < offset + stream_count(part):
            break
        offset += stream_count(part)
    values = tuple(item[plan.layout.attributes[order.attribute].stored] for order in plan.merged_by)
    return replace(position_of_item(part, stream, item), values=values)


def start_of(plan: Plan, stream: int, position: Position, *, backward: bool) -> StreamStart | None:
    """Return how a stream of a query or Scan continues from a position; ``None`` if it is exhausted."""
    whole = StreamStart(plan.conditions[stream] if plan.conditions else None)
    if position.key is None:
        begins = stream < position.stream if backward else stream >= position.stream
        return whole if begins else None
    if stream == position.stream:
        return StreamStart(whole.condition, _start_key(plan, whole.condition, position))
    comes_later = (stream < position.stream) if backward else (stream > position.stream)
    if not is_merged(plan):
        return whole if comes_later else None
    narrowed = narrow(plan.conditions[stream], position.sort, ascending=is_ascending(plan, backward=backward))
    return None if narrowed is None else StreamStart(narrowed, overlaps=True)


def _start_key(plan: Plan, condition: KeyCondition | None, position: Position) -> Mapping[str, Mapping[str, str]]:
    start = item_key(position.key or ("", ""))
    index = plan.index
    if index is not None and condition is not None:
        partition, sort = names.key_names(index)
        start |= {partition: {"S": condition.partition}, sort: {"S": position.sort}}
    return start


def narrow(condition: KeyCondition, bound: str, *, ascending: bool) -> KeyCondition | None:
    """Return the part of a key condition's range from ``bound`` on, in reading direction; ``None`` if it is empty.

    DynamoDB accepts one condition on a sort key, and BETWEEN includes its bounds. The result may therefore include the
    bound itself, and items that a strict bound of the condition excludes, which the reader drops.
    """
    return _intersect(condition, bound if ascending else "", None if ascending else bound)


def _intersect(condition: KeyCondition, lowest: str, highest: str | None) -> KeyCondition | None:
    low, high = _bounds(condition)
    low = max(low, lowest)
    if high is None or (highest is not None and highest < high):
        high = highest
    if high is None:
        return KeyCondition(condition.partition, ">=", (low,)) if low else KeyCondition(condition.partition)
    if low > high:
        return None
    if not low:
        return KeyCondition(condition.partition, "<=", (high,))
    return KeyCondition(condition.partition, "between", (low, high))


def _bounds(condition: KeyCondition) -> tuple[str, str | None]:
    operator, operands = condition.operator, condition.operands
    if operator == "=":
        return operands[0], operands[0]
    if operator == "begins_with":
        return operands[0], prefix_end(operands[0])
    if operator == "between":
        return operands[0], operands[1]
    if operator in ("<", "<="):
        return "", operands[0]
    return (operands[0] if operands else ""), None


def find_position(plan: Plan, item: Item) -> Position | None:
    """Return the position of a stored item; ``None`` if the plan does not return it."""
    offset = 0
    for part in parts_of(plan):
        stream = None if any(matches(other, item) for other in part.exclusions) else _stream_of(part, item)
        if stream is not None:
            return at(plan, offset + stream, item)
        offset += stream_count(part)
    return None


def _stream_of(plan: Plan, item: Item) -> int | None:
    if not matches(plan.filter, item, plan.layout):
        return None
    if plan.kind == "scan":
        return 0
    own = plan_key_of(plan, item)
    number = plan.keys.index(own) if own in plan.keys else None
    streams = (stream for stream, condition in enumerate(plan.conditions) if _is_read_by(plan, condition, item))
    return next(streams, number)


def _is_read_by(plan: Plan, condition: KeyCondition, item: Item) -> bool:
    partition, sort = names.key_names(plan.index)
    # An item that is not in the index lacks both of its keys.
    if item.get(partition, {}).get("S") != condition.partition:
        return False
    return condition.includes(item[sort]["S"])


class NarrowedPart(Struct, frozen=True):
    """The reads of a part of a union from a position on: keys, or key conditions, of which ``None`` are exhausted.

    It may include items before the position, which the reader drops.
    """

    conditions: tuple[KeyCondition | None, ...] = ()
    keys: frozenset[ItemKey] = frozenset()


def narrow_parts(plan: Plan, value: object, *, backward: bool, now: object) -> tuple[NarrowedPart, ...]:
    """Return what each part reads from a position on, whose value of the union's first ordering is given."""
    order = plan.merged_by[0]
    term = Compare(order.attribute, "gte" if order.descending == backward else "lte", value)
    return tuple(_narrow_part(part, term, now) for part in plan.parts)


def _narrow_part(part: Plan, term: Compare, now: object) -> NarrowedPart:
    terms = conjuncts(simplify(part.query.where))
    if constraints_of(join((*terms, term)), part.layout) is None:
        return NarrowedPart((None,) * len(part.conditions))
    if part.keys:
        found = _by_same_key(part, (*terms, term), now)
        return NarrowedPart(keys=frozenset(part.keys if found is None else found.keys))
    # Other conditions on the attribute could hide the bound, since a key condition has one range.
    found = _by_same_key(part, (*(each for each in terms if term.attribute not in attributes_of(each)), term), now)
    if found is None or len(found.conditions) != len(part.conditions):
        return NarrowedPart(part.conditions)
    pairs = zip(part.conditions, found.conditions, strict=True)
    return NarrowedPart(tuple(_intersect(condition, *_bounds(bound)) for condition, bound in pairs))


def _by_same_key(part: Plan, terms: Iterable[Condition], now: object) -> Plan | None:
    where = join(terms)
    query = replace(part.query, where=where, using_index=part.key.name if part.key else None)
    constraints = constraints_of(where, part.layout)
    return None if constraints is None else plan_of_one_key(query, constraints, now)[0]
