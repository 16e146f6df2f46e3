"""The page of a single item with its keys and related items, and the common functions of the table's pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.translation import gettext as _

from dynamo_single.admin.secrets import Masks
from dynamo_single.admin.sites import DynamoAdminSite
from dynamo_single.admin.viewing.pages import Wrong, allows, guarded, in_words
from dynamo_single.admin.viewing.rules import may_view_model, sees_all, sees_whole_table
from dynamo_single.conf import table_settings
from dynamo_single.contrib.table_admin import visible_items
from dynamo_single.contrib.table_admin.cells import cell
from dynamo_single.contrib.table_admin.item_view import Link, ShownItem, ShownKey, links_of, places_of, shown
from dynamo_single.contrib.table_admin.own_names import check_text, index_name, shown_text, stored_names
from dynamo_single.contrib.table_admin.visible_items import alias_of
from dynamo_single.costs import Costs, measure_requests
from dynamo_single.orm.items.encode import stored_key
from dynamo_single.orm.reading.single import get_items, stored_item
from dynamo_single.orm.schema import registry
from dynamo_single.table.flow import run
from dynamo_single.table.names import key_names
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT
from dynamo_single.table.table import get_table


def urls(site: DynamoAdminSite) -> list[URLPattern]:
    """Return the addresses of the pages."""
    return [
        path("dynamodb/item/", guarded(site, visible_items.TABLE, item_page), name="dynamodb_item"),
    ]


def item_page(site: DynamoAdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return one item with its keys, its JSON and its related items: one GetItem."""
    alias = alias_of(request)
    key = request.GET.get("pk", ""), request.GET.get("sk", "")
    check_text(key[0], PARTITION_KEY_LIMIT)
    check_text(key[1], SORT_KEY_LIMIT)
    if not all(key):
        raise Wrong(_("An item has a partition key and a sort key."))
    with measure_requests() as costs:
        item = run(stored_item(get_table(alias), key))
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
        "keys": [(each, *_key(site, alias, each)) for each in found.keys],
        "attributes": [(name, cell(found.own_model, name, value)) for name, value in found.visible.items()],
        "queryset": _queryset(found),
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
        "costs": costs_of(site, request, alias, costs),
    }
    return TemplateResponse(request, "dynamo_single/admin/table/item.html", context)


def _key(site: DynamoAdminSite, alias: str, key: ShownKey) -> tuple[str, str, str, list[tuple[str, str, str]]]:
    """Return the index and its address, and each part with the table's name of it, its value and its template."""
    parts = [
        (name, shown_text(alias, own, text), template)
        for name, own, text, template in zip(
            stored_names(alias, key.index),
            key_names(key.index),
            (key.partition, key.sort),
            key.templates,
            strict=True,
        )
        if name
    ]
    index = "" if key.index is None else index_name(alias, key.index)
    return index, key.name, _place(site, alias, key.index, key.place), parts


def _queryset(item: ShownItem) -> str:
    """Return the expression for an item's object, or an empty string if it is not an object."""
    if item.pk is None or item.own_model is None:
        return ""
    manager = "deleted_objects" if item.in_trash else item.own_model._default_manager.name
    return f"{item.own_model.__name__}.{manager}.get(pk={str(item.pk)!r})"


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
    "derived": lambda: _("Derived item"),
    "source": lambda: _("Copied from"),
    "counter": lambda: _("Counted by"),
    "copies": lambda: _("Copied to"),
    "counted": lambda: _("Counts"),
}


def _visible(site: DynamoAdminSite, request: HttpRequest, alias: str, links: Iterable[Link]) -> list[Link]:
    """Return the links that the user may see; a BatchGetItem unless all objects of their models are visible."""
    found = [link for link in links if may_view_model(site, request, link.model)]
    asked = {link.key for link in found if not sees_all(site, request, link.model)}
    items = run(get_items(get_table(alias), asked)) if asked else {}
    seen = {key for key, item in items.items() if visible_items.may_view_item(site, request, alias, item)}
    return [link for link in found if link.key not in asked or link.key in seen]


def costs_of(site: DynamoAdminSite, request: HttpRequest, alias: str, costs: Costs) -> str:
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
    return "" if partition is None else place_url(site, alias, index, partition)


def place_query(alias: str, index: str | None, partition: str) -> str:
    """Return the query string of a partition."""
    given = {
        "alias": "" if alias == "default" else alias,
        "index": index or "",
        "pk": shown_text(alias, key_names(index)[0], partition),
    }
    return urlencode({name: value for name, value in given.items() if value})


def place_url(site: DynamoAdminSite, alias: str, index: str | None, partition: str) -> str:
    """Return the address of a partition."""
    return f"{reverse('admin:dynamodb_table', current_app=site.name)}?{place_query(alias, index, partition)}"
