"""What every page about the table begins with: its permission, its table's alias, and 400 for what no page asks."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from dynamo_single.admin.table import permissions
from dynamo_single.admin.table.permissions import TableSite
from dynamo_single.conf import aliases
from dynamo_single.exceptions import InvalidCursor, InvalidValue

View = Callable[[TableSite, HttpRequest], HttpResponseBase]


class Wrong(Exception):
    """A parameter of the address that no page of ours has made."""


def guarded(site: TableSite, permission: str, view: View) -> Callable[[HttpRequest], HttpResponseBase]:
    """A view of the site for those who have the permission; what cannot be read of the address is refused."""

    def wrapped(request: HttpRequest) -> HttpResponseBase:
        permissions.demand(request, permission)
        try:
            return view(site, request)
        except (Wrong, InvalidCursor, InvalidValue) as error:
            text = str(error) if isinstance(error, Wrong) or settings.DEBUG else ""
            return HttpResponseBadRequest(text, content_type="text/plain; charset=utf-8")

    return site.admin_view(wrapped)


def alias_of(request: HttpRequest) -> str:
    """The alias of the table that the address asks for; raises ``Wrong`` for one that is not declared."""
    name = request.GET.get("alias", "default")
    if name not in aliases():
        raise Wrong(_("There is no table of this alias."))
    return name
