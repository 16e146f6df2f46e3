"""The health of a table: what is wrong with it as a whole, and a check of its items, part by part."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from dynamo_single.admin.table import permissions, views
from dynamo_single.admin.table.permissions import TableSite
from dynamo_single.conf import aliases
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import InvalidCursor
from dynamo_single.inspection import health
from dynamo_single.table.table import Table, get_table


def urls(site: TableSite) -> list[URLPattern]:
    """The address of the page."""

    def page(request: HttpRequest) -> HttpResponseBase:
        permissions.demand(request, permissions.HEALTH)
        alias = request.GET.get("alias", "default")
        if alias not in aliases():
            return HttpResponseBadRequest(_("There is no table of this alias."), content_type="text/plain")
        try:
            return health_page(site, request, get_table(alias))
        except InvalidCursor as error:
            return HttpResponseBadRequest(str(error) if settings.DEBUG else "", content_type="text/plain")

    return [path("dynamodb/health/", site.admin_view(page), name="dynamodb_health")]


def health_page(site: TableSite, request: HttpRequest, table: Table) -> HttpResponseBase:
    """What is wrong with the table; with ``check`` in the address also a part of its items, by 500 at a time."""
    alias = table.settings.alias
    context: dict[str, Any] = {**site.each_context(request), "title": _("Health"), "alias": alias, "aliases": aliases()}
    with measure_requests() as costs:
        if "check" in request.GET:
            found = health.checked(table, request.GET["check"], views.indexes(alias), views.masks_of(site))
            visible = [each for each in found.findings if _may_see(site, request, each)]
            context |= {
                "checked": found,
                "findings": [
                    (each, "" if each.key is None else _item_url(site, request, alias, each)) for each in visible
                ],
                "hidden": len(found.findings) - len(visible),
            }
        else:
            context["troubles"] = list(health.troubles(table))
    return TemplateResponse(request, "dynamo_single/admin/table/health.html", {**context, "costs": costs})


def _may_see(site: TableSite, request: HttpRequest, finding: health.ShownFinding) -> bool:
    return permissions.may_view(site, request, finding.model)


def _item_url(site: TableSite, request: HttpRequest, alias: str, finding: health.ShownFinding) -> str:
    if finding.key is None or not permissions.allows(request, permissions.TABLE):
        return ""
    return views.item_url(site, alias, finding.key)
