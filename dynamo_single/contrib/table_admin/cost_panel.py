"""A panel at the end of each admin page: the requests that it sent, the data that they read, and their cost.

The panel needs a setting and a separate permission, because keys may contain personal data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.template.response import SimpleTemplateResponse

from dynamo_single.admin.secrets import Masks
from dynamo_single.admin.sites import DynamoAdminSite
from dynamo_single.admin.viewing.pages import allows, in_words
from dynamo_single.admin.viewing.rules import is_narrowed
from dynamo_single.conf import aliases, cost_settings
from dynamo_single.contrib.table_admin import visible_items
from dynamo_single.contrib.table_admin.table_reads import ShownRequest, shown_request
from dynamo_single.costs import Cost, Costs
from dynamo_single.table.redirects import SentRequest, listening

#: The most requests that a panel lists. The total includes all of them.
_LISTED: Final = 200
_END: Final = b"</body>"


class _Watch:
    """The requests that a page sends."""

    def __init__(self, site: DynamoAdminSite) -> None:
        self.masks = Masks(site.is_secret)
        self.costs = Costs()
        self.requests: list[ShownRequest] = []
        self.with_keys = cost_settings().show_keys

    def __call__(self, sent: SentRequest) -> None:
        self.costs.add(Cost.of(sent))
        if len(self.requests) < _LISTED:
            self.requests.append(shown_request("default", sent, self.masks, with_keys=self.with_keys))


def with_panel(site: DynamoAdminSite, view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return a view whose pages end with the panel if the settings enable it and the user has the permission."""

    @functools.wraps(view)
    def measured(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if not cost_settings().admin_panel:
            return view(request, *args, **kwargs)
        watch = _Watch(site)
        with listening(watch):
            response = view(request, *args, **kwargs)
            if isinstance(response, SimpleTemplateResponse) and not response.is_rendered:
                response = response.render()
            is_page = isinstance(response, HttpResponse) and _END in response.content
            if not is_page or not _may_see(site, request):
                return response
        _add(response, watch)
        return response

    return measured


def _may_see(site: DynamoAdminSite, request: HttpRequest) -> bool:
    """Return whether the user has the permission, and the project's admins do not hide objects from the user."""
    if not allows(request, visible_items.COSTS):
        return False
    return not any(is_narrowed(site, request, alias) for alias in aliases())


def _add(response: Any, watch: _Watch) -> None:
    unlisted = watch.costs.requests - len(watch.requests)
    context = {"costs": in_words(watch.costs), "requests": watch.requests, "unlisted": unlisted}
    panel = render_to_string("dynamo_single/admin/table/costs.html", context).encode(response.charset)
    before, _, after = response.content.rpartition(_END)
    response.content = before + panel + _END + after
