"""Pages of the site that belong to no model: their permission, their place on the index, and their cost.

Such a page does not write. It returns a bad request (400) for parameters that none of its links contains. The cost of
requests is described in words that can be translated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.contrib.admin.sites import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dynamo_single.costs import Costs
from dynamo_single.exceptions import InvalidCursor, InvalidValue
from dynamo_single.table.request import READS

View = Callable[[Any, HttpRequest], HttpResponseBase]
#: A page on the site's index: its label, its view, and its permission, or ``None`` if that was already checked.
Listed = tuple[str, str, str | None]


class Wrong(Exception):
    """A parameter of the address is invalid."""


def allows(request: HttpRequest, permission: str) -> bool:
    """Return whether the user has the permission for a page."""
    user: Any = request.user
    return bool(user.is_active and user.has_perm(permission))


def demand(request: HttpRequest, permission: str) -> None:
    """Raise ``PermissionDenied`` for a user without the permission for a page."""
    if not allows(request, permission):
        raise PermissionDenied


def guarded(site: AdminSite, permission: str, view: View) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return a view of the site for users with the permission; invalid addresses are rejected."""

    def wrapped(request: HttpRequest) -> HttpResponseBase:
        demand(request, permission)
        try:
            return view(site, request)
        except (Wrong, InvalidCursor, InvalidValue) as error:
            text = str(error) if isinstance(error, Wrong) or settings.DEBUG else ""
            return HttpResponseBadRequest(text, content_type="text/plain; charset=utf-8")

    return site.admin_view(wrapped)


def index_entries(site: AdminSite, request: HttpRequest, pages: Iterable[Listed]) -> list[dict[str, object]]:
    """Return these pages as another app for the admin's index, limited to those that the user may see."""
    found = [
        {
            "name": name,
            "object_name": view.removeprefix("dynamodb_"),  # becomes an id of the page and must not be translated
            "perms": {"add": False, "change": False, "delete": False, "view": True},
            "admin_url": reverse(f"admin:{view}", current_app=site.name),
            "add_url": None,
            "view_only": True,
        }
        for name, view, permission in pages
        if permission is None or allows(request, permission)
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


def in_words(costs: Costs) -> str:
    """Return the cost as text, like ``str()``: requests, items read and returned, units, time."""
    if not costs.operations:
        return _("no requests")
    operations = ", ".join(f"{count} {operation}" for operation, count in costs.operations.items())
    failed = _(", %(count)d failed") % {"count": costs.failures} if costs.failures else ""
    number = costs.requests
    counted = ngettext("%(count)s request (%(which)s)", "%(count)s requests (%(which)s)", number)
    parts = [counted % {"count": f"{number:,}", "which": f"{operations}{failed}"}]
    if not READS.isdisjoint(costs.operations):
        read = ngettext(
            "%(read)s item read, %(returned)s returned", "%(read)s items read, %(returned)s returned", costs.items_read
        )
        parts.append(read % {"read": f"{costs.items_read:,}", "returned": costs.items_returned})
        units = ngettext("%(count)s read unit", "%(count)s read units", _plural(costs.read_units))
        parts.append(units % {"count": _number(costs.read_units)})
    if costs.write_units:
        units = ngettext("%(count)s write unit", "%(count)s write units", _plural(costs.write_units))
        parts.append(units % {"count": _number(costs.write_units)})
    return ", ".join([*parts, _("%(count)s ms") % {"count": f"{costs.seconds * 1000:.1f}"}])


def _number(units: float) -> str:
    return f"{units:,.10g}"


def _plural(units: float) -> int:
    """Return the number that determines the plural form: half a unit is not singular."""
    return int(units) if units.is_integer() else 2
