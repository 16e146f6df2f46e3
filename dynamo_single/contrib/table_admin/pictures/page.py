"""The page of the pictures: it reads only the stored sample, and a button takes a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dynamo_single.admin.secrets import Masks
from dynamo_single.admin.sites import DynamoAdminSite
from dynamo_single.admin.viewing.pages import guarded
from dynamo_single.admin.viewing.rules import is_narrowed, may_view_model, sees_all, sees_whole_table
from dynamo_single.admin.viewing.table_samples import TableSample
from dynamo_single.conf import aliases
from dynamo_single.contrib.table_admin import views, visible_items
from dynamo_single.contrib.table_admin.item_view import model_shown
from dynamo_single.contrib.table_admin.masked_keys import masked_text
from dynamo_single.contrib.table_admin.pictures import drawing, sampling
from dynamo_single.contrib.table_admin.visible_items import alias_of
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.table import names
from dynamo_single.table.table import get_table


def urls(site: DynamoAdminSite) -> list[URLPattern]:
    """Return the address of the page."""
    return [path("dynamodb/pictures/", guarded(site, visible_items.TABLE, page), name="dynamodb_pictures")]


def page(site: DynamoAdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return the pictures of the stored sample: one GetItem. A POST takes a sample first: see ``sampling.take()``."""
    alias = alias_of(request)
    if request.method == "POST":
        sampling.take(get_table(alias))
        return HttpResponseRedirect(request.get_full_path())
    with measure_requests() as costs:
        sample = _stored(alias)
    context = {
        **site.each_context(request),
        "title": _("Pictures"),
        "alias": alias,
        "aliases": aliases(),
        "sample": sample,
        "most_items": sampling.MAX_ITEMS,
        "most_bytes": sampling.MAX_BYTES,
        "most_units": sampling.MAX_UNITS,
        "costs": views.costs_of(site, request, alias, costs),
    }
    if sample is not None:
        context |= _pictures(site, request, alias, sample.found)
    return TemplateResponse(request, "dynamo_single/admin/table/pictures.html", context)


def _stored(alias: str) -> Any:
    """Return the sample of a table; ``None`` if there is none, or if another release stored other contents."""
    try:
        found = TableSample.objects.filter(pk=alias).first()
    except DynamoSingleError:
        return None
    return found if found is not None and sampling.is_complete(found.found) else None


def _pictures(site: DynamoAdminSite, request: HttpRequest, alias: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pictures without models that are hidden from the user, and with the site's secrets masked."""
    masks = views.masks_of(site)
    whole = sees_whole_table(site, request, alias)

    def visible(partition: str, sort: str, item_type: str) -> bool:
        key = {names.PARTITION_KEY: partition, names.SORT_KEY: sort, names.ITEM_TYPE: item_type}
        model = model_shown(alias, {name: {"S": text} for name, text in key.items()})
        if model is None or not site.is_registered(model):
            return may_view_model(site, request, model) and not is_narrowed(site, request, alias)
        return sees_all(site, request, model)

    # A claim's type does not name its model.
    types = [
        each for each in found["types"] if (whole or each[0] != names.CLAIM_ITEM_TYPE) and visible("", "", each[0])
    ]
    seen = [place for place, each in enumerate(found["drawn"]) if visible(*each)]
    moved = {place: number for number, place in enumerate(seen)}
    drawn = [found["drawn"][place] for place in seen]
    arrows = [(moved[one], moved[to], kind) for one, to, kind in found["arrows"] if one in moved and to in moved]
    colors = drawing.colors_of([*(each[0] for each in types), *(each[2] for each in drawn)])
    shown = _shown(alias, masks)
    pictures = [
        (_WHITEBOARD, drawing.whiteboard(drawn, arrows, shown, colors)),
        (_SIZES, drawing.sizes(types, colors)),
        (
            _TYPES,
            drawing.shares([(name, sum(counts), size, colors[name]) for name, size, counts in types], str(_TYPES)),
        ),
    ]
    if whole:
        named = [(shown(name, "")[0], count, size, "currentColor") for name, count, size in found["partitions"]]
        pictures.append((_PARTITIONS, drawing.shares(named, str(_PARTITIONS))))
    largest = []
    for partition, sort, item_type, size in found["largest"]:
        if not visible(partition, sort, item_type):
            continue
        key = shown(partition, sort)
        url = views.item_url(site, alias, (partition, sort)) if key == (partition, sort) else ""
        largest.append((key, item_type, size, url))
    return {"pictures": pictures, "largest": largest, "found": found if whole else None}


_WHITEBOARD = gettext_lazy("Some partitions with their items by sort key")
_SIZES = gettext_lazy("Items by size")
_TYPES = gettext_lazy("Items and bytes by type")
_PARTITIONS = gettext_lazy("Items and bytes of the largest partitions")


def _shown(alias: str, masks: Masks) -> Callable[[str, str], tuple[str, str]]:
    def shown(partition: str, sort: str) -> tuple[str, str]:
        text = masked_text(alias, partition, masks)
        return text, masks.key(alias, partition, sort)[1] if text == partition else MASK

    return shown
