"""Match one declared key with a query: return the reads of the key, or the first missing requirement.

This module does not depend on the other keys of the model, except that their items may be in the range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Literal

from msgspec import Struct, field

from dynamo_single.exceptions import EmptyKeyPart, InvalidValue
from dynamo_single.orm.conditions import lowering
from dynamo_single.orm.conditions.implication import gives_value, implies
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import DELETED_AT, IDENTITY, MAX_MEMBERS, Compare, Condition, join
from dynamo_single.orm.plan.constraints import Constraints
from dynamo_single.orm.plan.neighbours import KEY, PARTITION, KeyRange, Shape
from dynamo_single.orm.plan.ordering import (
    ReadOrder,
    UnsuitableKey,
    check_sortable,
    memory_order,
    merged_order,
    read_order_of,
    sorts_by_value,
    sorts_like,
)
from dynamo_single.orm.plan.plan import InMemory, KeyCondition, PlanKind, Query, SortOperator
from dynamo_single.orm.plan.shards import possible_keys, range_in_shard, shard_places
from dynamo_single.orm.schema.keys.codecs import EMPTY, LAST, LAST_VALUE
from dynamo_single.orm.schema.keys.template import KeyPart, NoIdentity, prefix_end
from dynamo_single.orm.schema.layout import AccessKey, IndexCondition, ModelLayout
from dynamo_single.table.masking import ESCAPE
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT

# The bounds of the keys whose sort key part has the requested values.  Every character of an encoded value is ``$`` or
# higher and every separator that keeps the order is lower. Therefore ``P + value + "$"`` is after all keys of exactly
# that value and before those of every higher value, and is itself never a key. DynamoDB accepts one condition on the
# sort key: BETWEEN if there are two bounds.


class Narrowing(Struct, frozen=True):
    """A condition on the sort key, and the comparisons that it expresses completely.

    ``impossible`` means that no key at all lies between the bounds.
    """

    operator: SortOperator
    operands: tuple[str, ...]
    used: tuple[Compare, ...]
    impossible: bool = False


class _Bound(Struct, frozen=True):
    text: str
    is_upper: bool
    strict: bool = False


def narrow_by_part(part: KeyPart, prefix: str, comparisons: Sequence[Compare]) -> Narrowing | None:
    """Narrow the keys that start with ``prefix`` by comparisons with the next part; return ``None`` without one."""
    if part.bound.prefixable:
        for comparison in comparisons:
            if comparison.operator == "startswith" and comparison.value:
                return Narrowing("begins_with", (prefix + part.encode(comparison.value),), (comparison,))
    if part.place and part.terminator:
        for comparison in comparisons:
            if (comparison.operator, comparison.value) == ("isnull", True):
                return Narrowing("begins_with", (prefix + part.encode(None) + part.terminator,), (comparison,))
    if not part.ordered:
        return None
    bounds: list[_Bound] = []
    used: list[Compare] = []
    for comparison in comparisons:
        found = tuple(_bounds(part, prefix, comparison))
        bounds.extend(found)
        if found or (part.place and (comparison.operator, comparison.value) == ("isnull", False)):
            used.append(comparison)
    return _between(prefix, [*bounds, *_of_values(part, prefix)], used) if used else None


def _of_values(part: KeyPart, prefix: str) -> Iterable[_Bound]:
    """Return where values begin or end in a part that also has objects without one: no value compares to these."""
    if part.place == "first":
        yield _Bound(prefix + EMPTY, is_upper=False)
    elif part.place == "last":
        yield _Bound(prefix + LAST_VALUE, is_upper=True)


def _bounds(part: KeyPart, prefix: str, comparison: Compare) -> Iterable[_Bound]:
    # In front of a separator, the keys of one value are all those between the value and the value with "$" after.
    after = ESCAPE if part.terminator else ""
    try:
        if comparison.operator == "gte":
            yield _Bound(prefix + part.encode(comparison.value), is_upper=False)
        elif comparison.operator == "gt":
            # The lowest key above a raw value is the value and NUL.
            above = "\x00" if part.bound.raw else ESCAPE
            yield _Bound(prefix + part.encode(comparison.value) + above, is_upper=False)
        elif comparison.operator == "lte":
            yield _Bound(prefix + part.encode(comparison.value) + after, is_upper=True)
        elif comparison.operator == "lt":
            yield _Bound(prefix + part.encode(comparison.value), is_upper=True, strict=not part.terminator)
        elif comparison.operator == "range":
            low, high = (prefix + part.encode(value) for value in comparison.value)
            yield _Bound(low, is_upper=False)
            yield _Bound(high + after, is_upper=True)
    except InvalidValue:
        # A bound that the key's format cannot write (score < 10**9 under {score:08d}) is left to the filter.
        return


def _between(prefix: str, bounds: Sequence[_Bound], used: Sequence[Compare]) -> Narrowing:
    low = max((bound.text for bound in bounds if not bound.is_upper), default=prefix)
    uppers = [bound for bound in bounds if bound.is_upper]
    high = min((bound.text for bound in uppers), default=None)
    if high is None:
        if prefix:
            return Narrowing("between", (low, prefix_end(prefix)), tuple(used))
        return Narrowing(">=", (low,), tuple(used)) if low else Narrowing("", (), tuple(used))
    impossible = low > high or not high
    if low:
        # BETWEEN includes its bounds: without characters after the value, "less than" still needs a filter.
        strict = [bound for bound in uppers if bound.strict]
        left = [term for term in used if not (strict and term.operator == "lt")]
        return Narrowing("between", (low, high), tuple(left), impossible)
    strictly = any(bound.strict and bound.text == high for bound in uppers)
    return Narrowing("<" if strictly else "<=", (high,), tuple(used), impossible)


#: How many partitions, or single items, one query may be spread over. Each partition is a Query of its own, as is each
#: object of which ``prefetch_related`` reads the children.
MAX_PARTITIONS = MAX_MEMBERS
MAX_KEYS = MAX_MEMBERS

#: The operator and the value of "there is one".
_PRESENT = ("isnull", False)

Values = Mapping[str, Any]


class Candidate(Struct, frozen=True):
    """A plan for a query with one key, and how well the key narrows the read."""

    kind: PlanKind
    key: AccessKey
    ranges: tuple[KeyRange, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    residual: tuple[Condition, ...] = ()
    served: ReadOrder = field(default_factory=ReadOrder)
    complete: bool = False
    equal: int = 0
    narrowed: bool = False
    consumed: int = 0


def evaluate_key(
    key: AccessKey, query: Query, constraints: Constraints, shares: Callable[[AccessKey, KeyRange], bool]
) -> Candidate:
    """Return how a key serves a query, or raise ``UnsuitableKey``.

    ``shares`` returns whether a range of the key can contain items of other models.
    """
    _check_given(key.partition.parts, constraints, key)
    condition = None
    if key.condition is not None:
        condition = lowering.with_stored_names(key.condition, query.layout)
        _check_condition(key.condition, condition, query, constraints)
    _check_complete(key, condition, query, constraints)
    if key.index is None and all(_values(part, constraints) for part in key.sort.parts):
        return _by_primary_key(key, query, constraints)
    return _by_range(key, query, constraints, shares)


def _values(part: KeyPart, constraints: Constraints) -> tuple[object, ...]:
    """Return the possible values of a part; a comparison of canonical forms also determines a canonical part."""
    allowed = constraints.allowed.get(part.name)
    if allowed is not None:
        return allowed
    if part.bound.spec == "canonical":
        return tuple(term.value for term in constraints.on(part.name) if term.operator == "canonical")[:1]
    return ()


def _check_given(parts: Sequence[KeyPart], constraints: Constraints, key: AccessKey) -> None:
    missing = [part.name for part in parts if part.name not in constraints.allowed and not _values(part, constraints)]
    if not missing:
        return
    compared = [name for name in missing if constraints.on(name)]
    if compared:
        lookup = constraints.on(compared[0])[0].operator
        raise UnsuitableKey(
            f"the query filters {compared[0]} by {lookup!r}; its partition {key.partition.source!r} needs the "
            "exact value"
        )
    raise UnsuitableKey(f"the query does not set {' and '.join(missing)}")


def _check_condition(given: IndexCondition, condition: Condition, query: Query, constraints: Constraints) -> None:
    """Raise ``UnsuitableKey`` unless the query implies the condition of an index, which omits other items."""
    asked = (term for term in constraints.terms if not _is_identity(term))
    if not implies(join(lower(term, query.layout) for term in asked), condition):
        raise UnsuitableKey(f"it may omit matching items; filter by {lowering.filter_text(given)} too")


def _is_identity(term: Condition) -> bool:
    return isinstance(term, Compare) and term.attribute == IDENTITY


def _check_complete(key: AccessKey, condition: Condition | None, query: Query, constraints: Constraints) -> None:
    """An index does not contain items with a missing or empty part, so the result would silently omit them."""
    layout = query.layout
    if key.index is None:
        return
    for name in key.required_variables:
        info = layout.attributes[name]
        deleted = key is layout.trash and name == DELETED_AT
        present = info.required or deleted or constraints.excludes_empty(name, text=info.is_text)
        if not (present or (condition is not None and gives_value(condition, info.stored, text=info.is_text))):
            # An empty text is not in an index either.
            remedy = f"{name}__gt=''" if info.is_text else f"{name}__isnull=False"
            raise UnsuitableKey(
                f"items without {name} are not in it, and the query does not exclude them; {remedy} does"
            )


def _by_primary_key(key: AccessKey, query: Query, constraints: Constraints) -> Candidate:
    parts = (*key.partition.parts, *key.sort.parts)
    lists = {part.name: _values(part, constraints) for part in parts}
    count = len(constraints.identities) or prod(map(len, lists.values()))
    if count > MAX_KEYS:
        raise UnsuitableKey(f"it would read {count} items individually; the limit is {MAX_KEYS}")
    if constraints.identities:
        combinations: Iterable[Values] = constraints.identities
        used: tuple[Condition, ...] = constraints.on(IDENTITY)
    else:
        combinations = (dict(zip(lists, values, strict=True)) for values in product(*lists.values()))
        used = _expressed(parts, constraints)
    found: dict[tuple[str, str], Values] = {}
    for values in combinations:
        rendered = _primary_key(key, values)
        if rendered is not None:
            found.setdefault(rendered, values)
    single = len(found) == 1
    keys, orders = tuple(found), True
    if not single and found:
        try:
            keys = tuple(memory_order(query, found, constraints, parts))
        except UnsuitableKey:
            check_sortable(query, constraints)
            orders = False
    if key.sharding is not None:
        keys = tuple(each for one in keys for each in possible_keys(key.sharding, query, constraints, one, found[one]))
    kind: PlanKind = "batch_get" if len(keys) > 1 else "get" if keys else "empty"
    residual = _others(constraints.terms, used)
    served = ReadOrder(single=single, orders=orders)
    return Candidate(
        kind, key, (), keys, residual, served, complete=True, equal=len(key.sort.parts), consumed=len(used)
    )


def sorted_in_memory(query: Query, constraints: Constraints, keys: Iterable[AccessKey]) -> InMemory:
    """Return how to sort items of several keys after reading: as the first of ``keys`` that has the order, if any.

    A key counts if it holds whatever the query can give, even if it cannot be read for this query.
    """
    for key in keys:
        try:
            condition = None
            if key.condition is not None:
                condition = lowering.with_stored_names(key.condition, query.layout)
                _check_condition(key.condition, condition, query, constraints)
            _check_complete(key, condition, query, constraints)
            return InMemory(None, sorts_like(key, query, constraints), key_name=key.name)
        except UnsuitableKey:
            continue
    return InMemory(None, sorts_by_value(query, constraints))


def _primary_key(key: AccessKey, values: Values) -> tuple[str, str] | None:
    """Write a primary key, or ``None`` if no item can have it."""
    try:
        partition, sort = key.partition.render(values), key.sort.render(values)
    except (EmptyKeyPart, NoIdentity):
        return None
    except InvalidValue as error:
        raise UnsuitableKey(str(error).rstrip(".")) from error
    fits = len(partition.encode()) <= PARTITION_KEY_LIMIT and len(sort.encode()) <= SORT_KEY_LIMIT
    return (partition, sort) if fits else None


def _by_range(
    key: AccessKey, query: Query, constraints: Constraints, shares: Callable[[AccessKey, KeyRange], bool]
) -> Candidate:
    partitions = dict(_partitions(key, constraints))
    shards = () if key.sharding is None else shard_places(key.sharding, query, constraints)
    if len(partitions) * len(shards) > MAX_PARTITIONS:
        count = f"{len(partitions)} partitions of {len(shards)} shards"
        raise UnsuitableKey(
            f"it would read {count}, and the limit is {MAX_PARTITIONS} shards; query "
            f"{MAX_PARTITIONS // len(shards)} partitions at a time"
        )
    single = all(map(constraints.fixed, query.layout.identity))
    if single or not query.ordering:
        served = ReadOrder(partitions=tuple(partitions), single=single)
    else:
        served = read_order_of(query, key, constraints, partitions)
    if shards:
        served = merged_order(served)
    values: dict[str, Any] = {}
    equal = 0
    for part in key.sort.parts:
        given = _values(part, constraints)
        if len(given) != 1:
            break
        values[part.name] = given[0]
        equal += 1
    try:
        reading = _sort_condition(key, values, equal, constraints)
    except InvalidValue as error:
        raise UnsuitableKey(str(error).rstrip(".")) from error
    longest = max([len(operand.encode()) for operand in reading.operands], default=0)
    if longest + (len(LAST.encode()) if reading.operator == "begins_with" else 0) > SORT_KEY_LIMIT:
        raise UnsuitableKey(f"it would compare a sort key of more than {SORT_KEY_LIMIT} bytes")
    ranges = tuple(_ranges(key, served.partitions, reading, shares))
    if shards:
        ranges = tuple(range_in_shard(each, place) for each in ranges for place in shards)
    expressed = _expressed((*key.partition.parts, *key.sort.parts[:equal]), constraints)
    used = (*expressed, *reading.used, *_implied(key, query.layout, constraints))
    return Candidate(
        "empty" if reading.impossible or not ranges else "query",
        key,
        ranges,
        (),
        _others(constraints.terms, used),
        served,
        complete=reading.operator == "=",
        equal=equal,
        narrowed=bool(reading.used),
        consumed=len(used),
    )


def _partitions(key: AccessKey, constraints: Constraints) -> Iterator[tuple[str, Values]]:
    lists = {part.name: _values(part, constraints) for part in key.partition.parts}
    if (count := prod(map(len, lists.values()))) > MAX_PARTITIONS:
        raise UnsuitableKey(f"it would read {count} partitions; the limit is {MAX_PARTITIONS}")
    for chosen in product(*lists.values()):
        values = dict(zip(lists, chosen, strict=True))
        try:
            partition = key.partition.render(values)
        except EmptyKeyPart as error:
            if key.index is None:
                continue
            raise UnsuitableKey("it does not contain items whose key has an empty part") from error
        except NoIdentity:
            continue
        except InvalidValue as error:
            raise UnsuitableKey(str(error).rstrip(".")) from error
        if len(partition.encode()) <= PARTITION_KEY_LIMIT:
            yield partition, values


class _Reading(Struct, frozen=True):
    """A condition on the sort key; ``only_prefix`` if it merely keeps other models' items out."""

    operator: Any
    operands: tuple[str, ...]
    prefix: str
    shape: Shape = PARTITION
    used: tuple[Compare, ...] = ()
    only_prefix: bool = False
    impossible: bool = False


def _sort_condition(key: AccessKey, values: Values, count: int, constraints: Constraints) -> _Reading:
    sort = key.sort
    try:
        prefix = sort.prefix(values, count)
    except EmptyKeyPart as error:
        if key.index is None:
            return _Reading("", (), "", impossible=True)
        raise UnsuitableKey("it does not contain items whose key has an empty part") from error
    except NoIdentity:
        return _Reading("", (), "", impossible=True)
    if count == len(sort.parts):
        return _Reading("=", (prefix,), prefix, KEY)
    part = sort.parts[count]
    compared = constraints.on(part.name)
    narrowing = narrow_by_part(part, prefix, compared) if compared else None
    if narrowing is not None and narrowing.operator:
        kind, operands = _kind(narrowing, prefix), narrowing.operands
        return _Reading(
            narrowing.operator, operands, prefix, Shape(kind, count), narrowing.used, impossible=narrowing.impossible
        )
    if not prefix:
        return _Reading("", (), "")
    return _Reading("begins_with", (prefix,), prefix, Shape("prefix", count), only_prefix=count == 0)


def _kind(narrowing: Narrowing, prefix: str) -> Literal["prefix", "start", "above"]:
    if narrowing.operator == "begins_with":
        return "start"
    return "above" if prefix and narrowing.operands[-1] == prefix_end(prefix) else "prefix"


def _ranges(
    key: AccessKey, partitions: Iterable[str], reading: _Reading, shares: Callable[[AccessKey, KeyRange], bool]
) -> Iterator[KeyRange]:
    for partition in partitions:
        whole = KeyRange(KeyCondition(partition))
        if reading.only_prefix and not shares(key, whole):
            yield whole
        else:
            condition = KeyCondition(partition, reading.operator, reading.operands)
            yield KeyRange(condition, reading.prefix, reading.shape)


def _others(terms: Iterable[Condition], used: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the conditions that the key does not express."""
    expressed = {id(each) for each in used}
    return tuple([term for term in terms if id(term) not in expressed])


def _implied(key: AccessKey, layout: ModelLayout, constraints: Constraints) -> tuple[Condition, ...]:
    """Return the properties of every item of an index: values for each part of its keys, and its condition."""
    names = () if key.index is None else key.required_variables
    found: list[Condition] = []
    for name in names:
        found += [term for term in constraints.on(name) if (term.operator, term.value) == _PRESENT]
    if key.condition is not None:
        condition = lowering.with_stored_names(key.condition, layout)
        others = (term for term in constraints.terms if not _is_identity(term))
        found += [term for term in others if implies(condition, lower(term, layout))]
    return tuple(found)


def _expressed(parts: Sequence[KeyPart], constraints: Constraints) -> tuple[Condition, ...]:
    """The conditions that equality of these parts expresses completely."""
    expressed: list[Condition] = []
    whole = complete_references(parts) if any(part.path for part in parts) else ()
    for part in parts:
        for term in constraints.on(part.name):
            codec = part.bound
            exact = (codec.exact or part.name in whole) and term.operator in ("exact", "in")
            canonical = codec.spec == "canonical" and term.operator == "canonical"
            if (exact or canonical) and id(term) not in map(id, expressed):
                expressed.append(term)
    return tuple(expressed)


def complete_references(parts: Sequence[KeyPart]) -> set[str]:
    """The references of which the parts together write each single value of the identity that they hold."""
    written: dict[str, set[int]] = {}
    for part in parts:
        written.setdefault(part.name, set()).update(part.bound.leaves)
    return {part.name for part in parts if part.bound.of and len(written[part.name]) == part.bound.of}
