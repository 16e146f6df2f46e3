"""The health of a table: what is wrong with it as a whole, and a check of its items, part by part."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from dynamo_single.admin.table import permissions, views
from dynamo_single.admin.table.guarded import alias_of, guarded
from dynamo_single.admin.table.permissions import TableSite
from dynamo_single.admin.table.wording import in_words
from dynamo_single.admin.viewing.rules import sees_all
from dynamo_single.conf import aliases
from dynamo_single.costs import measure_requests
from dynamo_single.doctor import health
from dynamo_single.table.table import get_table


def urls(site: TableSite) -> list[URLPattern]:
    """The address of the page."""
    return [path("dynamodb/health/", guarded(site, permissions.HEALTH, health_page), name="dynamodb_health")]


def health_page(site: TableSite, request: HttpRequest) -> HttpResponseBase:
    """What is wrong with the table; with ``check`` in the address also a part of its items, by 500 at a time."""
    alias = alias_of(request)
    table = get_table(alias)
    context: dict[str, Any] = {**site.each_context(request), "title": _("Health"), "alias": alias, "aliases": aliases()}
    found: health.Checked | None = None
    with measure_requests() as costs:
        if "check" in request.GET:
            found = health.checked(table, request.GET["check"], views.masks_of(site))
            visible = [each for each in found.findings if sees_all(site, request, each.model)]
            context |= {
                "checked": found,
                "findings": [(each, _item_url(site, request, alias, each)) for each in visible],
            }
        else:
            context["troubles"] = list(health.troubles(table))
    if permissions.sees_whole_table(site, request, alias):
        context |= {"costs": in_words(costs), "read": found.read if found else None}
    return TemplateResponse(request, "dynamo_single/admin/table/health.html", context)


def _item_url(site: TableSite, request: HttpRequest, alias: str, finding: health.ShownFinding) -> str:
    if finding.key is None or not permissions.allows(request, permissions.TABLE):
        return ""
    return views.item_url(site, alias, finding.key)
