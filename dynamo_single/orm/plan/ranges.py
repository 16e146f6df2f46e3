"""One part of a sort key narrowed by comparisons: the bounds of the keys that hold just the values asked for.

Every character of a written value is ``$`` or higher and every separator that keeps the order is lower, so that
``P + value + "$"`` lies after all keys of exactly that value and in front of those of every higher one, and is itself
never a key. DynamoDB takes one condition on the sort key: BETWEEN if there are two bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.terms import Compare
from dynamo_single.orm.plan.plan import SortOperator
from dynamo_single.orm.schema.encoding.codecs import EMPTY, LAST_VALUE
from dynamo_single.orm.schema.encoding.keys import KeyPart, prefix_end
from dynamo_single.table.escaping import ESCAPE


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


def narrow(part: KeyPart, prefix: str, comparisons: Sequence[Compare]) -> Narrowing | None:
    """Narrow the keys that start with ``prefix`` by what is compared with the next part; ``None`` if nothing is."""
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
    """Where the values begin or end of a part that objects without one have too: nothing compares to these."""
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
            yield _Bound(prefix + part.encode(comparison.value) + ESCAPE, is_upper=False)
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
        # BETWEEN includes its bounds: where nothing follows the value, "less than" still has to be asked.
        strict = [bound for bound in uppers if bound.strict]
        left = [term for term in used if not (strict and term.operator == "lt")]
        return Narrowing("between", (low, high), tuple(left), impossible)
    strictly = any(bound.strict and bound.text == high for bound in uppers)
    return Narrowing("<" if strictly else "<=", (high,), tuple(used), impossible)
