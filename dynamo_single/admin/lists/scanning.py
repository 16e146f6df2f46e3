"""The part of the list page that scans a large list: its beginning, its links and its progress."""

from __future__ import annotations

import functools
from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils.crypto import salted_hmac

from dynamo_single.admin import types
from dynamo_single.admin.lists import in_memory, related, stepwise
from dynamo_single.admin.viewing.rules import sees_all

#: Django's parameter with the columns of the order.
ORDER_VAR = "o"
#: Django's parameter with the parameters of the list to return to.
PRESERVED_VAR = "_changelist_filters"
_OWNER_SALT = "dynamo_single.admin.scan_owner"


def is_fetched_in_advance(request: HttpRequest) -> bool:
    """Return whether a browser fetches a step of a scan in advance, before the user follows the link."""
    purpose = request.headers.get("Sec-Purpose") or request.headers.get("Purpose") or ""
    return stepwise.SCAN_VAR in request.GET and "prefetch" in purpose.lower()


def without_place(preserved: str) -> str:
    """Return Django's preserved filters without the position of a scan."""
    outer = QueryDict(preserved, mutable=True)
    if PRESERVED_VAR not in outer:
        return preserved
    inner = QueryDict(str(outer[PRESERVED_VAR]), mutable=True)
    if inner.pop(stepwise.SCAN_VAR, None) is None:
        return preserved
    del outer[PRESERVED_VAR]
    if inner:
        outer[PRESERVED_VAR] = inner.urlencode()
    return outer.urlencode()


class ScanningChangeList(types.KeyChangeList):
    """A list that is scanned step by step if keys do not support its filters or its search.

    The links of a large list contain a position, which is signed for the user. A scan that begins at such a link
    continues by itself. Without a position in the address, the page reads one step and waits for a click.
    """

    request: HttpRequest
    #: Whether the number of rows is known.
    is_counted = True
    #: Whether the page contains every match of a search.
    is_complete = True
    #: The progress of the scan; ``None`` if the page does not scan.
    progress: stepwise.ScanProgress | None = None
    progress_text = ""
    #: The conditions on related objects that a scan compares row by row, because too many objects meet them.
    followed: related.Conditions = ()
    #: Whether the page is a step of a scan.
    _is_scanned = False
    #: The parameter of the address: ``None`` if it is missing.
    _scan: str | None = None
    #: Whether links contain a position at which a scan may begin.
    _offers_scan = False

    @functools.cached_property
    def place(self) -> stepwise.ScanProgress | None:
        """The position in the address; ``None`` without one, for an offer, and if the list is not scanned."""
        return stepwise.read_progress(self.request, self._scan) if self._scan is not None and self.scan_budget else None

    def look_through(self, before: stepwise.ScanProgress) -> None:
        """Read the next step, and show its rows instead of a page of the list."""
        self._is_scanned = True
        if related.include_search(self.request):
            self.queryset = self.get_queryset(self.request)
        self.is_counted = False
        self.list_editable = ()
        self.result_list, self.progress = stepwise.next_rows(self, self.list_per_page, before)
        is_costed = sees_all(self.model_admin.admin_site, self.request, self.model)
        self.progress_text = stepwise.progress_text(self.progress, self.opts.verbose_name_plural, is_costed=is_costed)
        self.result_count = len(self.result_list)
        self.paginator = self.model_admin.get_paginator(self.request, self.result_list, self.list_per_page)

    @property
    def scan_budget(self) -> int:
        """The most items that a scan of the list reads."""
        return stepwise.scan_budget(self.model_admin)

    @property
    def scan_link(self) -> str | None:
        """The address of the next step of a scan, or of its first step if keys did not find every match."""
        if self.progress is None:
            is_asked = self.scan_budget and (self.query or self.has_active_filters) and not self.is_complete
            begin = {stepwise.SCAN_VAR: stepwise.sign_progress(self.request), ORDER_VAR: None}
            return self.get_query_string(begin) if is_asked else None
        further = {stepwise.SCAN_VAR: stepwise.sign_progress(self.request, self.progress)}
        return None if self.progress.is_over else self.get_query_string(further)

    @property
    def goes_on(self) -> bool:
        """Whether the page requests the next steps itself. It does not if a user followed a link from another site."""
        return bool(self._scan)

    @property
    def scan_owner(self) -> str:
        """The user and the search that found rows belong to, as a digest; the browser keeps them under this name."""
        text = f"{self.request.user.pk}:{self.request.path}:{self.get_query_string(remove=[stepwise.SCAN_VAR])}"
        return salted_hmac(_OWNER_SALT, text, algorithm="sha256").hexdigest()[:32]

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Return Django's query string. Links to filters of a large list contain a signed position."""
        if self._offers_scan:
            new_params = {**(new_params or {}), stepwise.SCAN_VAR: stepwise.sign_offer(self.request)}
        return super().get_query_string(new_params, remove)

    def offer_scans(self, request: HttpRequest) -> bool:
        """Return whether the links of this page may lead to a scan: the list is large, and scans are enabled."""
        return bool(self.scan_budget) and not self.is_small(request)

    def is_small(self, request: HttpRequest) -> bool:
        """Return whether a page can hold all rows of the list in memory."""
        limit = in_memory.limit_of(self.model_admin)
        return self.is_counted and self.result_count <= limit and not in_memory.is_exceeded(request)
