"""Reject conditions, orderings and columns that name a secret, for querysets after ``without_secrets()``.

``schema.secrecy`` decides which names are secrets. This module must not depend on querysets, and does not send any
requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import F, Q, Subquery
from django.db.models.expressions import Col, ResolvedOuterRef
from django.db.models.fields.json import KeyTransform

from dynamo_single.exceptions import DisallowedLookup
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.arguments import sides_of

#: A model, and a path that begins at it.
_Path = tuple[Any, tuple[str, ...]]


def check(model: type[DynamoModel], query: Any, given: Iterable[object]) -> None:
    """Raise ``DisallowedLookup`` if a name, a condition or an expression names a secret.

    A string is a name, with or without a lookup at its end or a ``-`` at its beginning. A pair is a lookup and its
    value. The name of an annotation in Django's ``query`` stands for the annotation's expression. Conditions must not
    be nested deeper than ``MAX_NESTING``.
    """
    for each in given:
        for named, path in _named(model, each, query):
            if secrecy.hides(named, path):
                raise DisallowedLookup(
                    f"{named._meta.label}: {shown('__'.join(path))} names a secret. After without_secrets() no "
                    "query filters, orders, groups or lists by one. Nothing was read. Use another attribute, "
                    "or filter before you call without_secrets()."
                )


def names_secret(model: type[DynamoModel], query: Any, given: object) -> bool:
    """Return whether a name, a condition or an expression names a secret, as for ``check()``."""
    return any(secrecy.hides(named, path) for named, path in _named(model, given, query))


def _named(model: Any, given: Any, query: Any) -> Iterator[_Path]:
    """Yield the names with their models. Names in subqueries and joins belong to other models."""
    yield from _paths(model, given, query)
    for inner in _subqueries(given):
        asked = inner.asked[0] if hasattr(inner, "asked") else None
        inside: list[Any] = [] if asked is None else [condition for _, condition in asked.inside]
        columns = asked.columns.names if asked is not None and asked.columns is not None else ()
        for each in (*inside, *columns, *inner.order_by, *inner.annotations.values(), *inner.select):
            yield from _named(inner.model, each, inner)
        for side in sides_of(inner.where):
            if isinstance(side, ResolvedOuterRef):
                yield from _paths(model, str(side.name), query)  # type: ignore[attr-defined]  # the stubs lack it
            elif hasattr(side, "resolve_expression"):
                yield from _named(inner.model, side, inner)


def _subqueries(given: Any) -> Iterator[Any]:
    """Yield Django's queries of the subqueries in a condition or an expression."""
    if isinstance(given, Subquery):
        yield given.query
        return
    if isinstance(given, Q):
        parts: Iterable[Any] = given.children
    elif isinstance(given, tuple | list):
        parts = given
    else:
        parts = getattr(given, "get_source_expressions", list)()
    for part in parts:
        yield from _subqueries(part)


def _paths(model: Any, given: Any, query: Any) -> Iterator[_Path]:
    if isinstance(given, str | F):
        name = given.lstrip("-") if isinstance(given, str) else str(given.name)  # type: ignore[attr-defined]  # the stubs lack it
        path = tuple(name.split("__"))
        # Django rejects an annotation that has the name of a field.
        if path[0] in query.annotations:
            yield from _named(model, query.annotations[path[0]], query)
        else:
            yield model, path
    elif isinstance(given, tuple | list):
        lookup, value = given if len(given) == 2 else ("", None)
        yield from _paths(model, str(lookup), query)
        for each in value if isinstance(value, tuple | list) else (value,):
            if hasattr(each, "resolve_expression") and not hasattr(each, "model"):
                yield from _paths(model, each, query)
    elif isinstance(given, Q):
        for child in given.children:
            yield from _paths(model, child, query)
    else:
        yield from _of_expression(model, given, query)


def _of_expression(model: Any, expression: Any, query: Any) -> Iterator[_Path]:
    if isinstance(expression, Col):
        yield from _of_column(expression, query)
        return
    sources: list[Any] = getattr(expression, "get_source_expressions", list)()
    key = (str(expression.key_name),) if isinstance(expression, KeyTransform) else ()
    for source in sources:
        if source is not None:
            yield from ((named, (*path, *key)) for named, path in _paths(model, source, query))


def _of_column(column: Any, query: Any) -> Iterator[_Path]:
    """Yield the name of a column with its model, and the names of the references that join the model."""
    yield column.target.model, (column.target.attname,)
    join = query.alias_map.get(column.alias)
    while getattr(join, "parent_alias", None) is not None:
        field = getattr(join.join_field, "field", join.join_field)
        yield field.model, (field.name,)
        join = query.alias_map.get(join.parent_alias)
