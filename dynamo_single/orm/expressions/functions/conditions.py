"""Django's conditions, computed in Python with SQL's three values: a comparison with a missing value is neither.

Django's documentation decides where databases differ: ``contains`` and ``regex`` distinguish case, ``icontains`` does
not, for all letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from django.db import models
from django.db.models import Lookup, Subquery
from django.db.models.expressions import Col
from django.db.models.fields import json
from django.db.models.sql import Query
from django.db.models.sql.where import AND, OR, NothingNode, WhereNode

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.conditions.comparing import ORDERINGS, hashable, is_equal, is_ordered
from dynamo_single.orm.expressions.evaluation import evaluate
from dynamo_single.orm.expressions.functions import subqueries
from dynamo_single.orm.expressions.functions.casting import as_text
from dynamo_single.orm.expressions.functions.documents import MISSING, place, step_into
from dynamo_single.orm.expressions.scope import Expression, Scope

#: The result of a condition: ``None`` is SQL's unknown.
Truth = bool | None


@evaluate.register(NothingNode)
def _nothing(expression: Expression, scope: Scope) -> Truth:
    return False


@evaluate.register(WhereNode)
def _where(node: Expression, scope: Scope) -> Truth:
    found = _joined(node.connector, (_truth(evaluate(child, scope)) for child in node.children))
    if not node.negated or found is None:
        return found
    return not found


def _truth(value: Any) -> Truth:
    return None if value is None else bool(value)


def _joined(connector: str, truths: Iterable[Truth]) -> Truth:
    if connector == AND:
        return _all(truths)
    if connector == OR:
        negated = _all(None if each is None else not each for each in truths)
        return None if negated is None else not negated
    # Django's SQL counts what is true, also beside a condition that is unknown.
    return sum(map(bool, truths)) % 2 == 1


def _all(truths: Iterable[Truth]) -> Truth:
    result: Truth = True
    for each in truths:
        if each is None:
            result = None
        elif not each:
            return False
    return result


@evaluate.register(Lookup)
def _lookup(lookup: Expression, scope: Scope) -> Truth:
    name = lookup.lookup_name
    if isinstance(lookup, json.HasKeyLookup):
        return _has_key(lookup, scope)
    if name == "isnull":
        return _is_missing(lookup.lhs, scope) is bool(lookup.rhs)
    check_lookup(name)
    value = evaluate(lookup.lhs, scope)
    if isinstance(lookup.lhs, json.KeyTransform) and name == "exact" and lookup.rhs is None:
        return place(lookup.lhs, scope) is None
    if value is None and name not in ("in",):
        return None
    return COMPARISONS[name](value, _operand(lookup, scope))


def check_lookup(name: str) -> None:
    """Raise ``NotSupported`` for a lookup that is SQL."""
    if name not in COMPARISONS and name != "isnull":
        known = ", ".join(sorted(COMPARISONS))
        raise NotSupported(f"Cannot compute the lookup {name!r} in memory. Use one of {known}.")


def _is_missing(side: Expression, scope: Scope) -> bool:
    """Return whether a side has no value; JSON's null is one."""
    if isinstance(side, json.KeyTransform):
        return place(side, scope) is MISSING
    return evaluate(side, scope) is None


def _operand(lookup: Expression, scope: Scope) -> Any:
    """Return the value of the right side, in the type of the left."""
    given = lookup.rhs
    if lookup.bilateral_transforms and not hasattr(given, "resolve_expression"):
        given = models.Value(given, output_field=lookup.lhs.output_field)
        for transform in lookup.bilateral_transforms:
            given = transform(given)
    if lookup.lookup_name == "in" and isinstance(given, Subquery | Query):
        return subqueries.members(given, scope)
    if hasattr(given, "resolve_expression"):
        return evaluate(given, scope)
    if lookup.lookup_name in ("in", "range"):
        return [_prepared(lookup.lhs, _each(one, scope)) for one in given]
    return _prepared(lookup.lhs, given) if lookup.lookup_name in _TYPED else given


def _each(value: Any, scope: Scope) -> Any:
    return evaluate(value, scope) if hasattr(value, "resolve_expression") else value


#: The lookups whose value has the type of the left side.
_TYPED = {"exact", *ORDERINGS}


def _prepared(side: Expression, value: Any) -> Any:
    """Return a given value in the type of a side: ``"2024-01-31"`` becomes a date if the side is one."""
    if isinstance(side, json.KeyTransform) or value is None:
        return value
    field = side.output_field
    attribute = getattr(side.target, "attribute", None) if isinstance(side, Col) else None
    if attribute is not None and not attribute.rounds:
        return attribute.prepare(value)
    return field.to_python(value) if isinstance(value, str) else value


def _in(value: Any, members: Iterable[Any]) -> Truth:
    if isinstance(members, models.QuerySet):
        raise NotSupported("Cannot compare with a queryset in memory. Read it first: list(queryset).")
    given = list(members)
    if not given:
        return False
    if value is None:
        return None
    if hashable(value) in {hashable(each) for each in given if each is not None}:
        return True
    return None if None in given else False


def _within(value: Any, bounds: Any) -> Truth:
    low, high = bounds
    return _all((is_ordered("gte", value, low), is_ordered("lte", value, high)))


def _text_test(compare: Callable[[str, str], bool], *, folds: bool = False) -> Callable[[Any, Any], Truth]:
    def compared(value: Any, part: Any) -> Truth:
        if part is None:
            return None
        if isinstance(value, set | frozenset):
            return any(compared(each, part) for each in value)
        one, other = as_text(value), as_text(part)
        return compare(one.casefold(), other.casefold()) if folds else compare(one, other)

    return compared


def _contains(value: Any, part: Any) -> Truth:
    if isinstance(value, set | frozenset):
        return hashable(part) in set(map(hashable, value))
    if isinstance(value, dict | list):
        return _includes(value, part)
    return _TEXT_CONTAINS(value, part)


def _includes(document: Any, part: Any) -> bool:
    """Return whether a document contains another, as ``contains`` of ``JSONField`` has it."""
    if isinstance(part, dict):
        if not isinstance(document, dict):
            return False
        return all(_includes(step_into(document, key), value) for key, value in part.items())
    if isinstance(document, list):
        wanted = part if isinstance(part, list) else [part]
        return all(any(_includes(each, one) for each in document) for one in wanted)
    return document is not MISSING and hashable(document) == hashable(part)


def _matches(flags: int) -> Callable[[Any, Any], Truth]:
    def matched(value: Any, pattern: Any) -> Truth:
        if pattern is None:
            return None
        try:
            return re.search(as_text(pattern), as_text(value), flags) is not None
        except re.error as error:
            # The pattern may come from an address, or be a secret.
            raise InvalidValue(f"The value of {'i' * bool(flags)}regex is not a regular expression.") from error

    return matched


def _has_key(lookup: Expression, scope: Scope) -> Truth:
    value = evaluate(lookup.lhs, scope)
    if value is None:
        return None
    keys = lookup.rhs if isinstance(lookup.rhs, list | tuple) else [lookup.rhs]
    found = (step_into(value, str(key)) is not MISSING for key in keys)
    return any(found) if lookup.lookup_name == "has_any_keys" else all(found)


def _ordering(operator: str) -> Callable[[Any, Any], Truth]:
    return lambda value, other: is_ordered(operator, value, other)


_TEXT_CONTAINS = _text_test(lambda value, part: part in value)

#: The comparisons of a value with the right side, by the lookup's name.
COMPARISONS: dict[str, Callable[[Any, Any], Truth]] = {
    "exact": is_equal,
    "iexact": _text_test(str.__eq__, folds=True),
    **{operator: _ordering(operator) for operator in ORDERINGS},
    "in": _in,
    "range": _within,
    "contains": _contains,
    "icontains": _text_test(lambda value, part: part in value, folds=True),
    "startswith": _text_test(str.startswith),
    "istartswith": _text_test(str.startswith, folds=True),
    "endswith": _text_test(str.endswith),
    "iendswith": _text_test(str.endswith, folds=True),
    "regex": _matches(0),
    "iregex": _matches(re.IGNORECASE),
    "contained_by": lambda value, whole: _includes(whole, value),
}
