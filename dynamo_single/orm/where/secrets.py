"""Reject conditions, orderings and columns that name a secret, for querysets after ``without_secrets()``.

``schema.secrecy`` decides which names are secrets. This module must not depend on querysets, and does not send any
requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import F, Q, Subquery
from django.db.models.expressions import Col, ResolvedOuterRef
from django.db.models.fields.json import KeyTransform

from dynamo_single.exceptions import DisallowedLookup
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.arguments import sides_of


def check(model: type[DynamoModel], annotations: Mapping[str, object], given: Iterable[object]) -> None:
    """Raise ``DisallowedLookup`` if a name, a condition or an expression names a secret.

    A string is a name, with or without a lookup at its end or a ``-`` at its beginning. A pair is a lookup and its
    value. The name of an annotation stands for the annotation's expression. Conditions must not be nested deeper than
    ``MAX_NESTING``.
    """
    for each in given:
        for named, path in _named(model, each, annotations):
            if secrecy.hides(named, path):
                raise DisallowedLookup(
                    f"{named._meta.label}: {shown('__'.join(path))} names a secret. After without_secrets() no "
                    "query filters, orders, groups or lists by one. Nothing was read. Use another attribute, "
                    "or filter before you call without_secrets()."
                )


def _named(model: Any, given: Any, annotations: Mapping[str, object]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield the names with their models: those of subqueries are of other models."""
    yield from ((model, path) for path in _paths(given, annotations))
    for query in _subqueries(given):
        asked = query.asked[0] if hasattr(query, "asked") else None
        inside: list[Any] = [] if asked is None else [condition for _, condition in asked.inside]
        columns = asked.columns.names if asked is not None and asked.columns is not None else ()
        for each in (*inside, *columns, *query.order_by, *query.annotations.values(), *query.select):
            yield from _named(query.model, each, query.annotations)
        for side in sides_of(query.where):
            if isinstance(side, ResolvedOuterRef):
                yield model, tuple(str(side.name).split("__"))  # type: ignore[attr-defined]  # the stubs lack it
            elif isinstance(side, Col):
                yield side.target.model, (side.target.attname,)
            elif hasattr(side, "resolve_expression"):
                yield from _named(query.model, side, query.annotations)


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


def _paths(given: Any, annotations: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    if isinstance(given, str | F):
        name = given.lstrip("-") if isinstance(given, str) else str(given.name)  # type: ignore[attr-defined]  # the stubs lack it
        path = tuple(name.split("__"))
        # Django rejects an annotation that has the name of a field.
        yield from _paths(annotations[path[0]], annotations) if path[0] in annotations else (path,)
    elif isinstance(given, tuple | list):
        lookup, value = given if len(given) == 2 else ("", None)
        yield from _paths(str(lookup), annotations)
        for each in value if isinstance(value, tuple | list) else (value,):
            if hasattr(each, "resolve_expression") and not hasattr(each, "model"):
                yield from _paths(each, annotations)
    elif isinstance(given, Q):
        for child in given.children:
            yield from _paths(child, annotations)
    else:
        yield from _of_expression(given, annotations)


def _of_expression(expression: Any, annotations: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    if isinstance(expression, Col):
        yield (expression.target.attname,)
        return
    sources: list[Any] = getattr(expression, "get_source_expressions", list)()
    key = (str(expression.key_name),) if isinstance(expression, KeyTransform) else ()
    for source in sources:
        if source is not None:
            yield from ((*path, *key) for path in _paths(source, annotations))
