"""Propose keys to developers for the features that the page of a large list omits. Does not send requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.contrib.admin.utils import label_for_field
from django.utils.translation import gettext as _

from dynamo_single.admin import paths
from dynamo_single.admin.lists import in_memory, search
from dynamo_single.admin.references import is_exact
from dynamo_single.admin.types import KeyChangeList, MissingPart, Rows
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.plan.advice import describe_key, propose_key, query_text
from dynamo_single.orm.plan.constraints import constraints_of
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import objects


def advice(changelist: KeyChangeList) -> list[tuple[str, str]]:
    """Return each feature that a page omits, and a fix for developers. Does not use the rows in memory."""
    rows = in_memory.without_cache(changelist.without_search()).order_by()
    limit = f"list_max_in_memory ({in_memory.limit_of(changelist.model_admin)})"
    if in_memory.is_heavy(changelist.request, changelist.model_admin):
        limit = f"list_max_bytes ({in_memory.max_bytes_of(changelist.model_admin)})"
    found = []
    for each in (*changelist.lacking, *_unsupported_search(changelist, rows), *_unsupported_columns(changelist)):
        counted = (
            f"It needs all rows, and no key can replace them. Raise {limit}, or remove it." if each.is_counted else ""
        )
        key = "" if each.asked is None else key_for(each.asked, rows)
        found.append((each.what, " ".join(filter(None, (counted, key)))))
    return found


def scan_advice(changelist: KeyChangeList) -> list[tuple[str, str]]:
    """Return the queries for which the page scans or omits an order, each with the key that would support it."""
    root: Any = changelist.root_queryset
    rows = in_memory.without_cache(root).order_by()
    orders = [(each.what, "" if each.asked is None else key_for(each.asked, rows)) for each in changelist.lacking]
    return [(_("the filters and the search"), in_memory.missing_key(changelist.queryset.order_by())), *orders]


def key_for(asked: Callable[[Rows], Rows], rows: Rows) -> str:
    """Return a sentence about a key for a query: an existing key, a proposal, or that no key can support it."""
    try:
        queryset = asked(rows)
        state = state_of(queryset)
        query = state.query()
    except DynamoSingleError as error:
        return str(error)
    words = query_text(query)
    if is_exact(queryset):
        key = objects.plan(state).key
        return f"{words} is served by {describe_key(key)}." if key is not None else f"{words} is served by keys."
    constraints = constraints_of(query.where, query.layout)
    proposal = propose_key(query, constraints) if constraints is not None else None
    if proposal is None:
        return f"No key can support {words}."
    return f"A key that supports {words}, for {state.layout.label}.Keys:\n  {proposal}"


def ordering(*names: object) -> Callable[[Rows], Rows]:
    """Return a function that orders rows."""
    return lambda rows: rows.order_by(*names)


def filtering(lookup: str, value: object) -> Callable[[Rows], Rows]:
    """Return a function that filters rows by a value; ``None`` selects the rows without a value."""
    name, _separator, operator = lookup.rpartition("__")
    return lambda rows: rows.filter(**({f"{name}__isnull": True} if value is None else {f"{name}__{operator}": value}))


def example_value(rows: Any, name: str) -> Any:
    """Return an example value of an attribute from the rows of the page, or ``None``."""
    return next((found for row in rows if (found := row.__dict__.get(name)) is not None), None)


def _unsupported_search(changelist: KeyChangeList, rows: Rows) -> Iterator[MissingPart]:
    """Yield the search fields that no key supports."""
    text = changelist.query.strip()
    fields = changelist.search_fields if text else ()
    for name in map(str, fields):
        path = search.path_of(rows.model, name)
        if not search.supported_lookup(rows, name, text):
            field = paths.field_at(rows.model, path) if paths.leads_on(rows.model, path) else None
            named = getattr(field, "verbose_name", path)
            shown = named if field is not None else label_for_field(path, rows.model, changelist.model_admin)
            yield MissingPart(_("the search in %(column)s") % {"column": shown}, filtering(f"{path}__startswith", text))


def _unsupported_columns(changelist: KeyChangeList) -> Iterator[MissingPart]:
    """Yield the columns that no key can sort."""
    named = {each.what for each in changelist.lacking}
    for name in changelist.unserved:
        what, asked = column_order(changelist, name)
        if what not in named:
            yield MissingPart(what, asked)


def column_order(changelist: KeyChangeList, name: Any) -> tuple[str, Callable[[Rows], Rows]]:
    """Return a description of the order by a column, and a function that orders rows by it."""
    shown = label_for_field(name, changelist.model, changelist.model_admin)
    return _("the order by %(column)s") % {"column": shown}, ordering(changelist.get_ordering_field(name))
