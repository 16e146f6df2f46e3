"""Pages of the site that belong to no model: their permission, their place on the index, and what they cost.

A page of this kind only reads. Parameters of an address that no link of the page has are refused with 400.
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
#: A page on the site's index: its name, its view, and its permission; ``None`` if that was asked for already.
Listed = tuple[str, str, str | None]


class Wrong(Exception):
    """A parameter of the address that no page of ours has made."""


def allows(request: HttpRequest, permission: str) -> bool:
    """Whether the user has the permission of a page."""
    user: Any = request.user
    return bool(user.is_active and user.has_perm(permission))


def demand(request: HttpRequest, permission: str) -> None:
    """Raise ``PermissionDenied`` for a user who has not the permission of a page."""
    if not allows(request, permission):
        raise PermissionDenied


def guarded(site: AdminSite, permission: str, view: View) -> Callable[[HttpRequest], HttpResponseBase]:
    """A view of the site for those who have the permission; what cannot be read of the address is refused."""

    def wrapped(request: HttpRequest) -> HttpResponseBase:
        demand(request, permission)
        try:
            return view(site, request)
        except (Wrong, InvalidCursor, InvalidValue) as error:
            text = str(error) if isinstance(error, Wrong) or settings.DEBUG else ""
            return HttpResponseBadRequest(text, content_type="text/plain; charset=utf-8")

    return site.admin_view(wrapped)


def index_entries(site: AdminSite, request: HttpRequest, pages: Iterable[Listed]) -> list[dict[str, object]]:
    """What the admin's index lists of these pages, as a further app: those that the user has the permission of."""
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


# What requests cost, in words for the pages of the admin, which can be translated.


def in_words(costs: Costs) -> str:
    """As ``str()`` has it: requests, items read and returned, units, time."""
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
    """The number that decides the form of a noun: half a unit is none of one."""
    return int(units) if units.is_integer() else 2
