"""The access patterns: every model's keys, what they answer, and a picture of them. The pages send nothing."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from dynamo_single.admin.table import permissions
from dynamo_single.admin.table.permissions import TableSite
from dynamo_single.conf import aliases
from dynamo_single.inspection.colors import number_of
from dynamo_single.inspection.patterns import by_index, patterns
from dynamo_single.inspection.picture import picture


def urls(site: TableSite) -> list[URLPattern]:
    """The addresses of the pages."""

    def guarded(
        view: Callable[[TableSite, HttpRequest, str], HttpResponseBase],
    ) -> Callable[[HttpRequest], HttpResponseBase]:
        def wrapped(request: HttpRequest) -> HttpResponseBase:
            permissions.demand(request, permissions.PATTERNS)
            alias = request.GET.get("alias", "default")
            if alias not in aliases():
                return HttpResponseBadRequest(_("There is no table of this alias."), content_type="text/plain")
            return view(site, request, alias)

        return site.admin_view(wrapped)

    return [
        path("dynamodb/patterns/", guarded(page), name="dynamodb_patterns"),
        path("dynamodb/patterns.svg", guarded(image), name="dynamodb_patterns_svg"),
    ]


def page(site: TableSite, request: HttpRequest, alias: str) -> HttpResponseBase:
    """The list and the picture."""
    found = patterns(alias)
    context = {
        **site.each_context(request),
        "title": _("Access patterns"),
        "alias": alias,
        "aliases": aliases(),
        "patterns": [(pattern, number_of(pattern.item_type)) for pattern in found],
        "picture": picture(by_index(found)),
    }
    return TemplateResponse(request, "dynamo_single/admin/table/patterns.html", context)


def image(site: TableSite, request: HttpRequest, alias: str) -> HttpResponseBase:
    """The picture by itself, to be printed or kept."""
    return HttpResponse(picture(by_index(patterns(alias))), content_type="image/svg+xml")
