"""Execute a query of Django's over rows that are computed in this process, without SQL.

The tables are ContentType, Permission and Django's record of migrations. Each has at most a few thousand rows, which
are joined, filtered, ordered, sliced and counted in memory. Everything else raises the error of the caller.

The following names are private to Django: ``alias_map``, ``alias_refcount``, ``join_cols``, ``parent_alias``,
``low_mark``, ``high_mark``, ``inner_query``, ``get_order_by`` and ``setup_query``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Value
from django.db.models.expressions import Col, Ref, Star
from django.db.models.sql.constants import LOUTER
from django.db.models.sql.where import AND, OR, NothingNode, WhereNode

Row = Mapping[str, Any]
#: A row of each table of a query, by the table's alias; ``None`` if an outer join found no row.
Joined = dict[str, Row | None]


@dataclass(frozen=True, slots=True)
class Source:
    """The tables that can be read: a function for the rows of each, by its name in SQL, and the engine's connection."""

    connection: Any
    tables: Mapping[str, Callable[[], list[Row]]]


class Unsupported(Exception):
    """The query uses a part of Django's queries that is not executed in memory."""


def rows_of(compiler: Any, source: Source) -> list[tuple[Any, ...]]:
    """Return the selected columns of the matching rows; raise ``Unsupported``."""
    query = compiler.query
    inner = getattr(query, "inner_query", None)
    if inner is not None:
        # An aggregate over a slice or over distinct rows.
        found = rows_of(inner.get_compiler(connection=source.connection), source)
        return [tuple(_counted(each, len(found)) for each in query.annotation_select.values())]
    if query.combinator or query.distinct_fields or query.extra or query.group_by is not None:
        raise Unsupported
    compiler.setup_query()
    order = [_order(each) for each, _ in compiler.get_order_by()]
    joined = matching(query, source)
    selected = [expression for expression, _, _ in compiler.select]
    if any(isinstance(each, Count) for each in selected):
        return [tuple(_aggregated(each, joined) for each in selected)]
    for column, descending in reversed(order):
        joined.sort(key=lambda each: _sortable(_value(column, each)), reverse=descending)
    rows = [tuple(_value(each, row) for each in selected) for row in joined]
    return (list(dict.fromkeys(rows)) if query.distinct else rows)[query.low_mark : query.high_mark]


def matching(query: Any, source: Source) -> list[Joined]:
    """Return the joined rows that match the query's conditions."""
    # Resolving the conditions has added their joins.
    found: list[Joined] = [{}]
    query.get_initial_alias()
    joins: dict[str, Any] = query.alias_map
    for alias, table in joins.items():
        if not query.alias_refcount[alias]:
            continue
        if table.table_name not in source.tables:
            raise Unsupported
        found = [*_join(found, alias, table, source.tables[table.table_name]())]
    holds = _condition(query.where, source)
    return [each for each in found if holds(each)]


def _join(found: list[Joined], alias: str, table: Any, rows: list[Row]) -> Iterator[Joined]:
    if not hasattr(table, "join_cols"):
        for only in rows:
            yield {alias: only}
        return
    ((left, right),) = table.join_cols
    by_value: dict[Any, list[Row | None]] = {}
    for other in rows:
        by_value.setdefault(other[right], []).append(other)
    otherwise: list[Row | None] = [None] if table.join_type == LOUTER else []
    for each in found:
        parent = each[table.parent_alias]
        for row in by_value.get(parent and parent[left], otherwise):
            yield {**each, alias: row}


def _value(expression: Any, row: Joined) -> Any:
    if isinstance(expression, Ref):
        (expression,) = expression.get_source_expressions()
    if isinstance(expression, Value):
        return expression.value
    if hasattr(expression, "get_cols"):
        # Several columns as one, in which Django reads the rows of references.
        return tuple(_value(each, row) for each in expression.get_cols())
    if type(expression) is not Col:
        raise Unsupported
    found, column = row[expression.alias], expression.target.column
    return None if found is None or column is None else found[column]


def _order(each: Any) -> tuple[Any, bool]:
    if each.nulls_first or each.nulls_last:
        raise Unsupported
    return each.expression, each.descending


def _sortable(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def _counted(aggregate: Any, number: int) -> int:
    if not _counts_rows(aggregate):
        raise Unsupported
    return number


def _counts_rows(aggregate: Any) -> bool:
    return (
        isinstance(aggregate, Count) and aggregate.filter is None and isinstance(_counted_expression(aggregate), Star)
    )


def _counted_expression(aggregate: Any) -> Any:
    return aggregate.get_source_expressions()[0]


def _aggregated(aggregate: Any, joined: list[Joined]) -> int:
    if _counts_rows(aggregate):
        return len(joined)
    if type(aggregate) is not Count or aggregate.filter is not None:
        raise Unsupported
    values = [_value(_counted_expression(aggregate), each) for each in joined]
    values = [each for each in values if each is not None]
    return len({*values}) if getattr(aggregate, "distinct", False) else len(values)


def _text(compare: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, wanted: compare(str(value), str(wanted))


def _folded(compare: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, wanted: compare(str(value).casefold(), str(wanted).casefold())


_LOOKUPS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "exact": lambda value, wanted: bool(value == wanted),
    "in": lambda value, wanted: value in wanted,
    "gt": lambda value, wanted: bool(value > wanted),
    "gte": lambda value, wanted: bool(value >= wanted),
    "lt": lambda value, wanted: bool(value < wanted),
    "lte": lambda value, wanted: bool(value <= wanted),
    "range": lambda value, wanted: bool(wanted[0] <= value <= wanted[1]),
    "iexact": _folded(str.__eq__),
    "contains": _text(str.__contains__),
    "icontains": _folded(str.__contains__),
    "startswith": _text(str.startswith),
    "istartswith": _folded(str.startswith),
    "endswith": _text(str.endswith),
    "iendswith": _folded(str.endswith),
    "regex": _text(lambda value, wanted: bool(re.search(wanted, value))),
    "iregex": _text(lambda value, wanted: bool(re.search(wanted, value, re.IGNORECASE))),
}


def _condition(node: Any, source: Source) -> Callable[[Joined], bool | None]:
    """Return a function that tests a row: the result is ``None`` if it is unknown, as in SQL.

    A subquery is executed here, once for all rows.
    """
    if isinstance(node, NothingNode):
        return lambda row: False
    if not isinstance(node, WhereNode):
        return _comparison(node, source)
    children = [_condition(each, source) for each in node.children]
    combined = _CONNECTORS.get(node.connector, _is_odd)

    def holds(row: Joined) -> bool | None:
        result = combined([each(row) for each in children])
        return not result if node.negated and result is not None else result

    return holds


def _all(found: list[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


def _any(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else not found


def _is_odd(found: list[bool | None]) -> bool | None:
    return None if None in found else sum(map(bool, found)) % 2 == 1


_CONNECTORS: Final[Mapping[str, Callable[[list[bool | None]], bool | None]]] = {AND: _all, OR: _any}


def _comparison(lookup: Any, source: Source) -> Callable[[Joined], bool | None]:
    name = str(getattr(lookup, "lookup_name", ""))
    if name != "isnull" and name not in _LOOKUPS:
        raise Unsupported
    left, wanted = lookup.lhs, lookup.rhs
    if name == "isnull":
        return lambda row: (_value(left, row) is None) is bool(wanted)
    is_column = False
    if hasattr(wanted, "get_compiler"):
        inner = [each for (each,) in rows_of(wanted.get_compiler(connection=source.connection), source)]
        wanted = {*inner} if name == "in" else next(iter(inner), None)
    else:
        is_column = hasattr(wanted, "resolve_expression")
    compare = _LOOKUPS[name]

    def holds(row: Joined) -> bool | None:
        value, other = _value(left, row), _value(wanted, row) if is_column else wanted
        return None if value is None or other is None else compare(value, other)

    return holds
