"""The arguments of ``filter()``: wrong names and lists are reported before Django trips over them.

This module knows Django's ``Q`` and must not know plans or querysets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, NoReturn

from django.core.exceptions import FieldError, ValidationError
from django.db.models import F, Q
from django.db.models.sql.where import WhereNode

from dynamo_single.exceptions import DynamoSingleError, InvalidValue, NotSupported, UnknownField
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.keys.identity import is_identity
from dynamo_single.orm.schema.keys.secret_values import MASK, lookups_in
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.lookups import relation_advice
from dynamo_single.table.request import LIMITS, MAX_OPERATORS

#: How deep conditions may be nested.
MAX_NESTING = 50

#: The start of Django's message for an unknown name.
_KEYWORD = re.compile(r"Cannot resolve keyword '(\w+)'")


@contextmanager
def django_errors_translated(model: type[DynamoModel], *conditions: object) -> Iterator[None]:
    """Raise Django's errors about conditions and expressions as errors of this app.

    A ``FieldError`` becomes ``UnknownField`` or ``NotSupported``, with the available names. If ``conditions`` name a
    secret, the error of a wrong value becomes ``InvalidValue``: Django's error and its causes contain the value.
    """
    try:
        yield
    except FieldError as error:
        raise_unknown(model, error)
    except (ValueError, TypeError, ArithmeticError, ValidationError) as error:
        names = [name for each in conditions for name in lookups_in(each) if secrecy.lookup_hides(model, name)]
        if not names or MASK in str(error):
            raise
        raise InvalidValue(
            f"Cannot filter by {', '.join(names)}: the lookup does not accept the type of this value. The "
            "message omits the value, because it is secret."
        ) from None


def raise_unknown(model: type[DynamoModel], error: FieldError) -> NoReturn:
    """Raise Django's ``FieldError`` as one of ours, with the names that filters support."""
    if isinstance(error, DynamoSingleError):
        raise error
    text, choices, _ = str(error).partition(" Choices are: ")
    found = _KEYWORD.match(text)
    keyword = found[1] if found else ""
    way_out = relation_advice(model, keyword)
    if way_out is not None:
        raise NotSupported(f"Cannot filter {model._meta.label} by {keyword!r}: {way_out}.") from error
    if choices:
        # Django also lists names of referring models, which filters do not support here.
        names = (field.name for field in model._meta.concrete_fields if not isinstance(field, IdentityField))
        text += f"{choices}{', '.join(sorted(names))}."
    raise UnknownField(f"{model._meta.label}: {text}") from error


#: The suffixes of a reference's name in a condition on the stored key.
_OF_KEYS = ("", "exact", "in", "isnull", "pk")


def may_read_others(model: type[DynamoModel], conditions: Iterable[object]) -> bool:
    """Return whether a condition may read other objects: it names more than an attribute, or has a queryset."""
    for condition in conditions:
        if isinstance(condition, Q):
            if may_read_others(model, condition.children):
                return True
        elif hasattr(condition, "resolve_expression"):
            return True
        elif isinstance(condition, tuple) and len(condition) == 2:
            first, _, rest = str(condition[0]).partition("__")
            plain, references = _own_names(model)
            if hasattr(condition[1], "resolve_expression") or (
                first not in plain and (first not in references or rest not in _OF_KEYS)
            ):
                return True
    return False


@cache
def _own_names(model: type[DynamoModel]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of a model's attributes, and the names of its references."""
    fields: Any = model._meta.concrete_fields
    plain = {name for each in fields if not each.is_relation for name in (each.name, each.attname)}
    references = [each for each in fields if each.is_relation]
    return frozenset({"pk", *plain, *(each.attname for each in references)}), frozenset(e.name for e in references)


def leaves_of(conditions: Iterable[Any]) -> Iterator[Any]:
    """Yield all conditions, including the conditions in each ``Q`` at any depth."""
    for each in conditions:
        if isinstance(each, Q):
            yield from leaves_of(each.children)
        else:
            yield each


def with_leaves_of(condition: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a condition after calling ``change`` on each condition in a ``Q``."""
    if isinstance(condition, Q):
        children = [with_leaves_of(each, change) for each in condition.children]
        return Q.create(children, condition.connector, condition.negated)
    return change(condition)


def with_sorted_members(condition: object) -> Any:
    """Return the condition with the set members of ``in`` sorted.

    The app sends requests in the order of a list. A cursor of one process must be valid in another process, so they
    must use the same order.
    """
    return with_leaves_of(condition, _with_sorted_members)


def _with_sorted_members(condition: object) -> object:
    if isinstance(condition, tuple) and len(condition) == 2:
        name, value = condition
        if str(name).endswith("__in") and isinstance(value, set | frozenset):
            return name, sorted(value, key=lambda member: str(getattr(member, "pk", member)))
    return condition


def sides_of(node: Any) -> Iterator[Any]:
    """Yield the expressions on both sides of each condition in Django's where-tree."""
    for child in getattr(node, "children", ()):
        yield from sides_of(child)
    yield from (side for side in (getattr(node, "lhs", None), getattr(node, "rhs", None)) if side is not None)


def check_nesting(conditions: Iterable[object]) -> None:
    """Reject conditions that are nested deeper than ``MAX_NESTING``, of a ``Q`` or of Django's where-tree.

    Django and this app walk through them by recursion. DynamoDB's expressions have the same limit.
    """
    level = list(conditions)
    for _ in range(MAX_NESTING + 1):
        level = [child for node in level if isinstance(node, Q | WhereNode) for child in node.children]
        if not level:
            return
    raise NotSupported(
        f"The conditions nest ~, & and | more than {MAX_NESTING} levels deep. Join similar conditions: "
        "Q(name__in=[...]) for many values of one attribute, and one ~Q(...) around several negated conditions."
    )


def check_condition_count(conditions: Collection[object]) -> None:
    """Refuse a query of more conditions, each of a ``filter()`` or ``exclude()``, than an expression has operators.

    Django copies all of them for each further call, so that time grows with the square of their number.
    """
    if len(conditions) > MAX_OPERATORS:
        raise NotSupported(
            f"filter() and exclude() join more than {MAX_OPERATORS} conditions, and DynamoDB does not allow "
            f"more operators in an expression ({LIMITS}). For many values of one attribute use __in: "
            "exclude(name__in=[...])."
        )


def check_conditions(model: type[DynamoModel], conditions: Iterable[object]) -> None:
    """Reject an argument that is not a condition, such as a value without the name of an attribute."""
    for condition in leaves_of(conditions):
        if not hasattr(condition, "resolve_expression") and not (
            isinstance(condition, tuple | list) and len(condition) == 2
        ):
            raise InvalidValue(
                f"{shown(condition)} is not a condition on {model._meta.label}. Name the attribute, as in "
                "filter(name=...) and get(pk=...), or pass a Q."
            )


def identity_parts(model: Any, kwargs: Mapping[str, object]) -> str:
    """Return the parts of a ``pk`` if a string cannot be one and matches no object; empty otherwise."""
    field, pk = model._meta.pk, kwargs.get("pk")
    if not isinstance(field, IdentityField) or not isinstance(pk, str) or is_identity(pk, len(field.names)):
        return ""
    return f" Its pk consists of {' and '.join(field.names)}: filter by these, or pass the pk of an object."


def check_lists(model: type[DynamoModel], conditions: Iterable[object]) -> None:
    """Reject a value that must be a list; Django's error does not name the condition."""
    for condition in leaves_of(conditions):
        if isinstance(condition, tuple) and len(condition) == 2:
            name, value = condition
            path, _, lookup = str(name).rpartition("__")
            wanted = {"in": "a list of values", "range": "two bounds"}.get(lookup)
            is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes)
            if path and wanted and not is_list and not hasattr(value, "resolve_expression"):
                given = MASK if secrecy.lookup_hides(model, name) else shown(value)
                raise InvalidValue(f"{name} must be {wanted}, not {given}.")
            if lookup == "in" and isinstance(value, list | tuple | set | frozenset):
                _check_members(model, path, value)


def _check_members(model: Any, path: str, members: Collection[object]) -> None:
    """Reject attributes in a list of references, which Django would use as primary keys."""
    written: list[Any] = [member for member in members if isinstance(member, F)]
    fields = (field for field in model._meta.concrete_fields if path in (field.name, field.attname))
    if written and any(field.is_relation for field in fields):
        alone = " | ".join(f"Q({path}=F({member.name!r}))" for member in written)
        rest = f" | Q({path}__in=[...])" if len(written) < len(members) else ""
        raise NotSupported(
            f"{model._meta.label}: {path}__in=[F({written[0].name!r})] is not supported: Django compares a "
            f"reference with the primary keys in a list, but with one attribute at a time. Use {alone}{rest}."
        )
