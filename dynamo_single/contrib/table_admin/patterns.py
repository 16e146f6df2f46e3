"""The pages of the access patterns: every model's keys with their queries, and a picture. They send no requests."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from dynamo_single.admin.sites import DynamoAdminSite
from dynamo_single.admin.viewing.pages import guarded
from dynamo_single.conf import aliases
from dynamo_single.contrib.doctor.patterns import by_index, number_of, patterns, picture
from dynamo_single.contrib.table_admin import visible_items
from dynamo_single.contrib.table_admin.visible_items import alias_of


def urls(site: DynamoAdminSite) -> list[URLPattern]:
    """Return the addresses of the pages."""
    return [
        path("dynamodb/patterns/", guarded(site, visible_items.PATTERNS, page), name="dynamodb_patterns"),
        path("dynamodb/patterns.svg", guarded(site, visible_items.PATTERNS, image), name="dynamodb_patterns_svg"),
    ]


def page(site: DynamoAdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return the page with the list and the picture."""
    alias = alias_of(request)
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


def image(site: DynamoAdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return only the picture, to print or save it."""
    return HttpResponse(picture(by_index(patterns(alias_of(request)))), content_type="image/svg+xml")
