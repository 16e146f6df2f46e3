"""The pages of the table: the items of a partition by sort key, for each index, and a single item with its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from msgspec import Struct

from dynamo_single.admin.secrets import Masks
from dynamo_single.admin.sites import DynamoAdminSite
from dynamo_single.admin.viewing.pages import Wrong, allows, guarded, in_words
from dynamo_single.admin.viewing.rules import may_view_model, sees_all, sees_whole_table
from dynamo_single.conf import aliases, table_settings
from dynamo_single.contrib.table_admin import table_reads, visible_items
from dynamo_single.contrib.table_admin.item_view import Link, ShownItem, links_of, places_of, shown
from dynamo_single.contrib.table_admin.masked_keys import asks_for_secret, masked_text
from dynamo_single.contrib.table_admin.visible_items import alias_of
from dynamo_single.costs import Costs, measure_requests
from dynamo_single.orm.items.encode import stored_key
from dynamo_single.orm.reading.single import get_items
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.schema import registry
from dynamo_single.table.flow import run
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT
from dynamo_single.table.table import get_table


class Asked(Struct, frozen=True):
    """The parameters of a table page; ``index`` is ``None`` for the table's primary key."""

    alias: str
    index: str | None
    partition: str
    prefix: str
    after: str
    newest: bool

    @classmethod
    def of(cls, request: HttpRequest) -> Asked:
        """Return the parameters of a request; raise ``Wrong`` for invalid ones."""
        given = request.GET
        alias = alias_of(request)
        index = given.get("index") or None
        if index is not None and index not in indexes(alias):
            raise Wrong(_("The table has no index of this name."))
        partition, prefix = given.get("pk", ""), given.get("begins", "")
        for text in (partition, prefix):
            _check(text, PARTITION_KEY_LIMIT)
        return cls(alias, index, partition, prefix, given.get("after", ""), given.get("order") == "newest")

    def query(self, **changes: str) -> str:
        """Return the query string with some parameters changed; empty parameters are omitted."""
        given = {
            "alias": "" if self.alias == "default" else self.alias,
            "index": self.index or "",
            "pk": self.partition,
            "begins": self.prefix,
            "order": "newest" if self.newest else "",
        }
        return urlencode({name: value for name, value in {**given, **changes}.items() if value})


class Row(Struct, frozen=True):
    """A row of a page: the item, and the addresses of its page and of its object's page."""

    item: ShownItem
    url: str
    object_url: str


def urls(site: DynamoAdminSite) -> list[URLPattern]:
    """Return the addresses of the pages."""
    return [
        path("dynamodb/table/", guarded(site, visible_items.TABLE, table_page), name="dynamodb_table"),
        path("dynamodb/item/", guarded(site, visible_items.TABLE, item_page), name="dynamodb_item"),
    ]


def table_page(site: DynamoAdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return a partition, a search by prefix, or a list of starting points. One Query; Scans of at most 2,000 items."""
    asked = Asked.of(request)
    masks = masks_of(site)
    hidden_key = masked_text(asked.alias, asked.partition, masks) != asked.partition
    if hidden_key or asks_for_secret(asked.alias, asked.prefix, masks):
        raise Wrong(_("You cannot search for keys that contain a secret."))
    table = get_table(asked.alias)
    page = None
    with measure_requests() as costs:
        if asked.partition:
            page = table_reads.partition(table, asked.index, asked.partition, after=asked.after, newest=asked.newest)
        elif asked.prefix:
            page = table_reads.beginning_with(table, asked.index, asked.prefix, after=asked.after)
    rows = [] if page is None else _rows(site, request, asked.alias, page.items)
    context = {
        **site.each_context(request),
        "title": _("Table"),
        "asked": asked,
        "aliases": aliases(),
        "indexes": indexes(asked.alias),
        "page": page,
        "rows": rows,
        "costs": _costs(site, request, asked.alias, costs),
        "begin": () if page is not None else list(beginnings(site, request, asked.alias)),
        "budget": table_reads.BUDGET,
        "next_url": "" if page is None or page.after is None else f"?{asked.query(after=page.after)}",
        "first_url": f"?{asked.query()}" if asked.after else "",
        "turned_url": f"?{asked.query(order='' if asked.newest else 'newest')}" if asked.partition else "",
        "total_size": sum(row.item.size for row in rows),
    }
    return TemplateResponse(request, "dynamo_single/admin/table/partition.html", context)


def item_page(site: DynamoAdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return one item with its keys, its JSON and its related items: one GetItem."""
    alias = alias_of(request)
    key = request.GET.get("pk", ""), request.GET.get("sk", "")
    _check(key[0], PARTITION_KEY_LIMIT)
    _check(key[1], SORT_KEY_LIMIT)
    if not all(key):
        raise Wrong(_("An item has a partition key and a sort key."))
    with measure_requests() as costs:
        item = table_reads.item_at(get_table(alias), key)
    # A hidden item looks like a missing one, so that its existence stays secret.
    if item is None or not visible_items.may_view_item(site, request, alias, item):
        raise Http404(_("No item has this key."))
    masks = masks_of(site)
    found = shown(alias, item, indexes(alias), masks)
    if found.key is None:
        raise Http404(_("No item has this key."))
    links = _visible(site, request, alias, links_of(alias, item, masks))
    places = [place for place in places_of(alias, item, masks) if may_view_model(site, request, place.model)]
    context = {
        **site.each_context(request),
        "title": _("Item"),
        "alias": alias,
        "item": found,
        "keys": [(each, _place(site, alias, each.index, each.place)) for each in found.keys],
        "links": [(_LINKED[each.relation](), each, item_url(site, alias, each.key)) for each in links],
        "places": [
            (
                _LINKED[each.relation](),
                each,
                each.model._meta.verbose_name_plural,
                _place(site, each.alias, each.index, each.partition),
            )
            for each in places
        ],
        "object_url": object_url(site, request, found),
        "costs": _costs(site, request, alias, costs),
    }
    return TemplateResponse(request, "dynamo_single/admin/table/item.html", context)


def masks_of(site: DynamoAdminSite) -> Masks:
    """Return the masks of a site."""
    return Masks(site.is_secret)


def indexes(alias: str) -> list[str]:
    """Return the indexes of a table: those of the settings, and those that models name."""
    named = (
        key.index
        for model in registry.all_models()
        if model._options.alias == alias
        for key in registry.layout_of(model).index_keys
        if key.index
    )
    return sorted({*table_settings(alias).indexes, *named})


def beginnings(site: DynamoAdminSite, request: HttpRequest, alias: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the keys of each visible model as starting points, with an address for a key with a constant partition.

    Each tuple contains the model's name, the index, the key's templates and the address.
    """
    for model in registry.all_models():
        if model._options.alias != alias or not may_view_model(site, request, model):
            continue
        layout = registry.layout_of(model)
        for key in (layout.primary, *layout.index_keys):
            place = _place(site, alias, key.index, None if key.partition.variables else key.partition.source)
            yield (
                capfirst(str(model._meta.verbose_name)),
                key.index or "",
                f"{key.partition.source} / {key.sort.source}",
                place,
            )


def item_url(site: DynamoAdminSite, alias: str, key: tuple[str, str]) -> str:
    """Return the address of an item's page."""
    given = {"pk": key[0], "sk": key[1], **({} if alias == "default" else {"alias": alias})}
    return f"{reverse('admin:dynamodb_item', current_app=site.name)}?{urlencode(given)}"


def object_url(site: DynamoAdminSite, request: HttpRequest, item: ShownItem) -> str:
    """Return the address of an object in the admin, or an empty string if there is none."""
    if item.pk is None or item.model is None or not site.is_registered(item.model):
        return ""
    options = item.model._meta
    try:
        name = f"admin:{options.app_label}_{options.model_name}_change"
        return reverse(name, args=[quote(item.pk)], current_app=site.name)
    except NoReverseMatch:
        return ""


_LINKED: dict[str, Callable[[], str]] = {
    "claim": lambda: _("Claim of"),
    "owner": lambda: _("Owner"),
    "reference": lambda: _("Reference"),
    "derived": lambda: _("Made of it"),
    "source": lambda: _("Copied from"),
    "counter": lambda: _("Counted by"),
    "copies": lambda: _("Copied to"),
    "counted": lambda: _("Counts"),
}


def _rows(site: DynamoAdminSite, request: HttpRequest, alias: str, items: Iterable[Item]) -> list[Row]:
    """Return the items that the user may see."""
    masks, names = masks_of(site), indexes(alias)
    rows = []
    for item in items:
        if not visible_items.may_view_item(site, request, alias, item):
            continue
        found = shown(alias, item, names, masks)
        url = "" if found.key is None else item_url(site, alias, found.key)
        rows.append(Row(found, url, object_url(site, request, found)))
    return rows


def _visible(site: DynamoAdminSite, request: HttpRequest, alias: str, links: Iterable[Link]) -> list[Link]:
    """Return the links that the user may see; a BatchGetItem unless all objects of their models are visible."""
    found = [link for link in links if may_view_model(site, request, link.model)]
    asked = {link.key for link in found if not sees_all(site, request, link.model)}
    items = run(get_items(get_table(alias), asked)) if asked else {}
    seen = {key for key, item in items.items() if visible_items.may_view_item(site, request, alias, item)}
    return [link for link in found if link.key not in asked or link.key in seen]


def _costs(site: DynamoAdminSite, request: HttpRequest, alias: str, costs: Costs) -> str:
    """Return the cost of a page, or an empty string if it would reveal hidden items to the user."""
    return in_words(costs) if sees_whole_table(site, request, alias) else ""


def item_url_of(site: DynamoAdminSite, request: HttpRequest, obj: Any) -> str:
    """Return the address of an object's item; empty if the user may not see the table, or the key contains a secret."""
    layout = registry.layout_of(type(obj)._meta.concrete_model)
    if not allows(request, visible_items.TABLE):
        return ""
    if not masks_of(site).attributes(type(obj)._meta.concrete_model).isdisjoint(layout.identity):
        return ""
    return item_url(site, layout.alias, stored_key(obj))


def _place(site: DynamoAdminSite, alias: str, index: str | None, partition: str | None) -> str:
    if partition is None:
        return ""
    page = reverse("admin:dynamodb_table", current_app=site.name)
    return f"{page}?{Asked(alias, index, partition, '', '', newest=False).query()}"


def _check(text: str, limit: int) -> None:
    """Refuse a text that no key can contain (AWS developer guide, "Quotas in Amazon DynamoDB")."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        size = limit + 1
    if size > limit:
        raise Wrong(_("This is too long for a key, or contains characters that keys do not have."))
