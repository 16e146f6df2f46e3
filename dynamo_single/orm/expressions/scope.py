"""The scope in which an expression is evaluated: a row, the rows of a group, and the values already computed.

``value_of()`` is the only place where a column becomes a value of an item. This module sends no requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from random import SystemRandom
from typing import Any

from django.utils import timezone

from dynamo_single import clock
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.relations.joining import Row, field_reader

#: Django's expressions, which have no common type with ``evaluate()``'s results.
Expression = Any


class Statement:
    """The values that all rows of one evaluation share: the current time and the readers of attributes."""

    def __init__(self, base: str) -> None:
        #: The alias of the queried model in each row.
        self.base = base
        self.now = clock.instant()
        self.random = SystemRandom().random
        #: The subqueries that were read for these rows, by the number of Django's query.
        self.subqueries: dict[int, Any] = {}
        self._readers: dict[tuple[str | None, str], Callable[[Item], Any]] = {}

    def reader(self, column: Expression) -> Callable[[Item], Any]:
        """Return the function that reads a column's value from an item; each is made once."""
        key = (column.alias, column.target.attname)
        if key not in self._readers:
            self._readers[key] = field_reader(column.target)
        return self._readers[key]


class Scope:
    """One row, or one group: ``members`` are the scopes of the group's rows, and ``row`` is the first row.

    ``outer`` is the row of the outer query if this one belongs to a subquery.

    ``known`` contains the values of annotations by alias, and of window functions by their number in the query.
    """

    __slots__ = ("known", "members", "outer", "row", "statement")

    def __init__(
        self, statement: Statement, row: Row, members: Sequence[Scope] | None = None, outer: Scope | None = None
    ) -> None:
        self.statement = statement
        self.row = row
        self.members = members
        self.outer = outer
        self.known: dict[object, Any] = {}


def value_of(scope: Scope, column: Expression) -> Any:
    """Return the value of a column in a row, or in the outer row that has the column's alias.

    It is ``None`` if the row has no object of the column's model.
    """
    alias = column.alias or scope.statement.base
    while alias not in scope.row and scope.outer is not None:
        scope = scope.outer
    item = scope.row.get(alias)
    if item is None:
        return None
    value = scope.statement.reader(column)(item)
    if isinstance(value, datetime) and timezone.is_aware(value):
        return clock.in_utc(value)
    return value
