"""The page of a range of items: a form for keys and filters, columns or the raw items, and a download of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from msgspec import Struct

from dynamo_single.admin.sites import DynamoAdminSite
from dynamo_single.admin.viewing.pages import Wrong, guarded
from dynamo_single.conf import aliases
from dynamo_single.contrib.table_admin import table_reads, views, visible_items
from dynamo_single.contrib.table_admin.cells import Cell, cells_of, columns_of, moment_of
from dynamo_single.contrib.table_admin.explorer import downloads, item_filters
from dynamo_single.contrib.table_admin.explorer.asked import OPERATOR_LABELS, Asked, Mistaken
from dynamo_single.contrib.table_admin.explorer.key_forms import KeyChoice, Range, key_choices, range_of
from dynamo_single.contrib.table_admin.item_view import ShownItem, shown
from dynamo_single.contrib.table_admin.masked_keys import asks_for_secret, compares_secret, masked_text
from dynamo_single.contrib.table_admin.own_names import shown_text, stored_names
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.requests.actions import Item
from dynamo_single.table.names import key_names
from dynamo_single.table.table import get_table


class Row(Struct, frozen=True):
    """A row of a page: the item with its key in the index, its cells, and the addresses of its page and its object."""

    item: ShownItem
    partition: str
    sort: str
    url: str
    object_url: str
    cells: list[Cell]
    more: int


class Query(Struct, frozen=True):
    """A validated query with the chosen key of a model, if any, and its range; ``asking`` is ``None`` for no query."""

    asked: Asked
    choices: list[KeyChoice]
    choice: KeyChoice | None
    range: Range | None
    asking: table_reads.Asking | None
    error: str = ""


def urls(site: DynamoAdminSite) -> list[URLPattern]:
    """Return the addresses of the pages."""
    return [
        path("dynamodb/table/", guarded(site, visible_items.TABLE, page), name="dynamodb_table"),
        path("dynamodb/table/download/", guarded(site, visible_items.TABLE, download), name="dynamodb_table_download"),
    ]


def page(site: DynamoAdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return a range, a search by prefix, or a list of starting points: see ``table_reads.page_of()``."""
    query = _query(site, request)
    asked, found, error = query.asked, None, query.error
    collected = _Collected(site, request, query)
    with measure_requests() as costs:
        if query.asking is not None:
            try:
                is_filtered = bool(asked.filters)
                found = table_reads.page_of(query.asking, collected.keep, after=asked.after, is_filtered=is_filtered)
            except NotSupported as refusal:
                error = str(refusal)
    rows, columns = _rows(site, request, query, collected.items)
    context = {
        **site.each_context(request),
        **_form(query),
        "title": _("Table"),
        "error": error,
        "page": found,
        "rows": rows,
        "columns": columns,
        "costs": views.costs_of(site, request, asked.alias, costs),
        "begin": () if asked.partition or asked.prefix or asked.key else list(_beginnings(site, query.choices)),
        "budget": table_reads.BUDGET,
        "next_url": "" if found is None or found.after is None else f"?{asked.query(after=found.after)}",
        "first_url": f"?{asked.query()}" if asked.after else "",
        "total_size": sum(row.item.size for row in rows),
    }
    return TemplateResponse(request, "dynamo_single/admin/table/partition.html", context)


def download(site: DynamoAdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return the items of a query as CSV or JSON lines: up to ``downloads.MAX_BYTES``, a request for each megabyte.

    A larger download is cut, and its name contains ``incomplete``.
    """
    form = request.GET.get("format", "csv")
    query = _query(site, request)
    if query.asking is None or form not in downloads.WRITERS:
        raise Wrong(query.error or _("There is nothing to download."))
    collected = _Collected(site, request, query)
    try:
        is_whole = table_reads.all_of(query.asking, collected.keep, max_bytes=downloads.MAX_BYTES)
    except NotSupported as refusal:
        raise Wrong(str(refusal)) from refusal
    items = [(found.model, downloads.visible_of(query.asked.alias, found)) for found in collected.items]
    content_type, write = downloads.WRITERS[form]
    name = "items" if is_whole else "items-incomplete"
    disposition = f'attachment; filename="{name}.{form}"'
    return HttpResponse(write(items), content_type=content_type, headers={"Content-Disposition": disposition})


class _Collected:
    """The items of a query that the user may see and that meet the filters."""

    def __init__(self, site: DynamoAdminSite, request: HttpRequest, query: Query) -> None:
        self._asked_by = site, request
        self._query = query
        self._masks = views.masks_of(site)
        self._indexes = views.indexes(query.asked.alias)
        self.items: list[ShownItem] = []

    def keep(self, item: Item) -> bool:
        """Keep an item if it belongs to the result."""
        query = self._query
        if query.range is not None and query.range.without:
            sort = item.get(key_names(query.asking.index if query.asking else None)[1], {})
            if sort.get("S") == query.range.without:
                return False
        if not visible_items.may_view_item(*self._asked_by, query.asked.alias, item):
            return False
        found = shown(query.asked.alias, item, self._indexes, self._masks)
        moments = _moments(found.own_model)
        if not all(each.meets(found.visible, moments) for each in query.asked.filters):
            return False
        self.items.append(found)
        return True


def _moments(model: Any) -> Any:
    return lambda name, value: moment_of(model, name, value)


def _query(site: DynamoAdminSite, request: HttpRequest) -> Query:
    """Return the query of an address; raise ``Wrong`` if it compares with a secret."""
    asked = Asked.of(request, {alias: views.indexes(alias) for alias in aliases()})
    masks = views.masks_of(site)
    choices = key_choices(site, request, asked.alias, masks)
    choice = next((each for each in choices if each.name == asked.key), None) if asked.key else None
    if asked.key and choice is None:
        raise Wrong(_("There is no key of this name."))
    found: Range | None = None
    try:
        if choice is not None:
            found = range_of(choice, asked)
        elif asked.partition:
            found = Range(asked.condition())
    except Mistaken as error:
        return Query(asked, choices, choice, None, None, str(error))
    index = asked.index if choice is None else choice.key.index
    prefix = "" if choice is not None or asked.partition else asked.prefix
    if found is None and not prefix:
        return Query(asked, choices, choice, None, None)
    _refuse_secrets(asked.alias, index, found, prefix, masks)
    condition = None if found is None else found.condition
    asking = table_reads.Asking(get_table(asked.alias), index, condition, prefix, asked.newest)
    return Query(asked, choices, choice, found, asking)


def _refuse_secrets(alias: str, index: str | None, found: Range | None, prefix: str, masks: Any) -> None:
    if found is None:
        is_secret = asks_for_secret(alias, prefix, masks)
    else:
        condition = found.condition
        is_secret = masked_text(alias, condition.partition, masks) != condition.partition or compares_secret(
            alias, index, condition.partition, condition.operands, masks
        )
    if is_secret:
        raise Wrong(_("You cannot search for keys that contain a secret."))


def _rows(
    site: DynamoAdminSite, request: HttpRequest, query: Query, items: Iterable[ShownItem]
) -> tuple[list[Row], list[str]]:
    alias, found = query.asked.alias, [*items]
    index = query.asking.index if query.asking is not None else None
    columns = columns_of(item.visible for item in found)
    rows = []
    for item in found:
        key = next((each for each in item.keys if each.index == index), None)
        partition, sort = ("", "") if key is None else (key.partition, key.sort)
        url = "" if item.key is None else views.item_url(site, alias, item.key)
        cells, more = cells_of(item.own_model, item.visible, columns)
        names = key_names(index)
        rows.append(
            Row(
                item,
                shown_text(alias, names[0], partition),
                shown_text(alias, names[1], sort),
                url,
                views.object_url(site, request, item),
                cells,
                more,
            )
        )
    return rows, columns


#: The number of filters in the form, at least.
_FILTER_ROWS: Final = 2


def _form(query: Query) -> Mapping[str, Any]:
    """Return the context of the form."""
    asked, choice = query.asked, query.choice
    index = asked.index if choice is None else choice.key.index
    groups: dict[str, list[KeyChoice]] = {}
    for each in query.choices:
        groups.setdefault(each.group, []).append(each)
    empty = [item_filters.Filter("", "eq", "")] * max(1, _FILTER_ROWS - len(asked.filters))
    whole = None
    if choice is not None and query.range is not None and query.range.condition.operator:
        condition = query.range.condition
        whole = f"?{views.place_query(asked.alias, choice.key.index, condition.partition)}"
    return {
        "asked": asked,
        "aliases": aliases(),
        "indexes": views.indexes(asked.alias),
        "choice": choice,
        "groups": groups,
        "fields": [] if choice is None else list(choice.fields(asked)),
        "operators": OPERATOR_LABELS,
        "filter_rows": [*asked.filters, *empty][: item_filters.MAX_FILTERS],
        "filter_operators": item_filters.LABELS,
        "key_names": stored_names(asked.alias, index),
        "queryset": "" if query.range is None else query.range.queryset,
        "whole_url": whole,
        "turned_url": f"?{asked.query(order='' if asked.newest else 'newest')}",
        "other_view_url": f"?{asked.query(view='' if asked.view == 'raw' else 'raw', after=asked.after)}",
        "downloads": [(form, f"download/?{asked.query(format=form)}") for form in downloads.WRITERS],
        "download_bytes": downloads.MAX_BYTES,
    }


def _beginnings(site: DynamoAdminSite, choices: Iterable[KeyChoice]) -> Iterator[tuple[KeyChoice, str]]:
    """Yield the keys as starting points, each with the address of its form."""
    for choice in choices:
        given = {} if choice.model._options.alias == "default" else {"alias": choice.model._options.alias}
        yield choice, f"?{urlencode({**given, 'key': choice.name})}"
