"""The pages about the table: their addresses, and where the admin's index leads to them."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest
from django.urls import URLPattern, reverse
from django.utils.translation import gettext as _

from dynamo_single.admin.table import health, patterns, permissions, views
from dynamo_single.admin.table.permissions import TableSite


def urls(site: TableSite) -> list[URLPattern]:
    """The addresses of all pages."""
    return [*views.urls(site), *patterns.urls(site), *health.urls(site)]


def entries(
    site: TableSite, request: HttpRequest, more: Sequence[tuple[str, str, str | None]] = ()
) -> list[dict[str, object]]:
    """What the admin's index lists of them, as a further app: those that the user has the permission of.

    ``more`` are other pages that stand there: name, view and permission, ``None`` where that was asked for already.
    """
    pages: tuple[tuple[str, str, str | None], ...] = (
        (_("Table"), "dynamodb_table", permissions.TABLE),
        (_("Access patterns"), "dynamodb_patterns", permissions.PATTERNS),
        (_("Health"), "dynamodb_health", permissions.HEALTH),
        *more,
    )
    found = [
        {
            "name": name,
            "object_name": view.removeprefix("dynamodb_"),  # becomes an id of the page, in no language
            "perms": {"add": False, "change": False, "delete": False, "view": True},
            "admin_url": reverse(f"admin:{view}", current_app=site.name),
            "add_url": None,
            "view_only": True,
        }
        for name, view, permission in pages
        if permission is None or permissions.allows(request, permission)
    ]
    if not found:
        return []
    return [
        {
            "name": "DynamoDB",
            "app_label": "dynamodb",
            "app_url": found[0]["admin_url"],
            "has_module_perms": True,
            "models": found,
        }
    ]
