"""Scan a large list for a filter that no key supports: step by step, at the user's request, within a budget.

A step continues at the end of the previous one. It reads the key that lists the model, or the table if no key does, and
compares the rows in Python. The address contains the position and the totals so far, signed for the user. Nothing is
stored: the scan ends when the user requests no more steps, and other users cannot continue it.

The paginator of this module serves Django's numbered pages from keys, and counts no page before it has to.
"""

from __future__ import annotations

import sys
from typing import Any

from django.core import signing
from django.core.paginator import EmptyPage, Page, PageNotAnInteger, Paginator
from django.http import HttpRequest
from django.utils.translation import gettext as _
from msgspec import Struct

from dynamo_single.admin.lists import in_memory, related
from dynamo_single.admin.references import is_exact
from dynamo_single.admin.types import KeyChangeList
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import InvalidCursor
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import prefetch
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import run

#: The parameter that contains the position where a step begins; empty for the first step.
SCAN_VAR = "scan"
#: The number of rows that are read at a time, and the most requests that this takes.
_CHUNK = 250
_MAX_REQUESTS = 5
#: The same number if each row takes a request for its related objects, and the requests after which a step ends.
_CHUNK_OF_RELATED = 25
_MAX_RELATED_REQUESTS = 100
_SALT = "dynamo_single.admin.scanning"


class ScanProgress(Struct, frozen=True):
    """The progress of a scan: the cursor of the next step, and the totals so far.

    ``is_over`` is set if there are no more rows, or if the budget is used up, and ``follows`` if the related objects of
    each row are read because more of them match than a list may hold.
    """

    cursor: str = ""
    read: int = 0
    found: int = 0
    requests: int = 0
    units: float = 0.0
    budget: int = 0
    is_over: bool = False
    follows: bool = False

    @property
    def is_at_the_end(self) -> bool:
        """Whether the scan has read everything."""
        return self.is_over and not self.cursor


def sign_progress(request: HttpRequest, progress: ScanProgress | None = None) -> str:
    """Return the progress for an address, signed for the user; without a progress, return the beginning."""
    values = progress or ScanProgress()
    found = [values.cursor, values.read, values.found, values.requests, values.units, values.follows]
    return signing.dumps(found, salt=_salt(request))


def sign_offer(request: HttpRequest) -> str:
    """Return a position for links of a large list: a scan begins there if keys do not support the list."""
    return signing.dumps([], salt=_salt(request))


def read_progress(request: HttpRequest, text: str) -> ScanProgress | None:
    """Return the progress that an address contains; ``None`` for an offer, whose list keys may serve.

    An empty text is the first step, which any page can link to. Only a signed position continues by itself. Raises
    ``InvalidCursor`` if the position is forged or another user's.
    """
    if not text:
        return ScanProgress()
    try:
        found = signing.loads(text, salt=_salt(request))
        if not found:
            return None
        # The position of an older link can lack ``follows``.
        cursor, read, total, requests, units, follows = [*found, False][:6]
        return ScanProgress(cursor, read, total, requests, units, follows=follows)
    except (signing.BadSignature, ValueError) as error:
        raise InvalidCursor("The position in the list did not come from this site.") from error


def _salt(request: HttpRequest) -> str:
    return f"{_SALT}:{request.user.pk}"


def scan_budget(model_admin: Any) -> int:
    """Return the most items that a scan of a list reads; 0 if the admin does not offer scans."""
    return int(getattr(model_admin, "list_scan_budget", None) or 0)


def next_rows(changelist: KeyChangeList, wanted: int, before: ScanProgress) -> tuple[list[Any], ScanProgress]:
    """Return the next rows, ``wanted`` or a few more if there are that many, and the progress after them.

    Reads about as many items as a list may hold in memory, and at most the rest of the budget plus one chunk. If each
    row requires its related objects, the step ends after about a hundred requests.
    """
    queryset, admin = changelist.queryset, changelist.model_admin
    limit, budget = in_memory.others_limit_of(admin) or _CHUNK, scan_budget(admin)
    (source, is_listed), condition, followed = _source(changelist), _condition(queryset), changelist.followed
    chunk = _CHUNK_OF_RELATED if related.leads_to_several(queryset.model, followed) else _CHUNK
    most_requests = _MAX_RELATED_REQUESTS if followed else sys.maxsize
    found: list[Any] = []
    cursor, read, looked = before.cursor, before.read, 0
    with measure_requests() as costs:
        while True:
            page = source.page(chunk, cursor or None, max_requests=_MAX_REQUESTS)
            rows = [row for row in page if matches(condition, row._stored)]
            found += related.matching_rows(queryset, followed, rows)
            cursor, looked = page.next_cursor or "", looked + len(page)
            # A scan of the whole table also reads the items of other models.
            read = before.read + (looked if is_listed else costs.items_read)
            is_enough = len(found) >= wanted or read - before.read >= limit or costs.requests >= most_requests
            if not cursor or is_enough or read >= budget:
                break
    run(prefetch.fetch_related(found, state_of(queryset).related_reads))
    progress = ScanProgress(
        cursor,
        read,
        before.found + len(found),
        before.requests + costs.requests,
        before.units + costs.read_units,
        budget,
        is_over=not cursor or read >= budget,
        follows=bool(followed),
    )
    return found, progress


def _source(changelist: Any) -> tuple[Any, bool]:
    """Return the rows to scan, narrowed by the filters that a key supports, and whether a key lists them."""
    filtered = changelist.without_search()
    everything = changelist.root_queryset.with_visibility(filtered._asked.visibility)
    for queryset in (filtered, everything):
        plain = in_memory.without_cache(queryset).order_by()
        if is_exact(plain):
            return plain, True
    return in_memory.without_cache(everything).order_by().allow_scan(), False


def _condition(queryset: QuerySet[DynamoModel]) -> Condition:
    state = state_of(queryset)
    return lower(state.where, state.layout)


def progress_text(progress: ScanProgress, name: object, *, is_costed: bool) -> str:
    """Describe the progress. Only users who see every row get the number of items read, and the cost."""
    if not is_costed:
        return _("%(found)d %(name)s found.") % {"found": progress.found, "name": name}
    looked = _("Searched %(read)d of up to %(budget)d items and found %(found)d %(name)s.")
    cost = _("%(requests)d requests, %(units)s units.")
    found = {"read": progress.read, "budget": progress.budget, "found": progress.found, "name": name}
    return f"{looked % found} {cost % {'requests': progress.requests, 'units': f'{progress.units:g}'}}"


class KeyPage(Page):  # type: ignore[type-arg]  # not generic at run time
    """A page that knows without a count whether there is a next page."""

    def __init__(self, rows: Any, number: int, paginator: Any, *, has_more: bool) -> None:
        super().__init__(rows, number, paginator)
        self._has_more = has_more

    def has_next(self) -> bool:
        """Return whether a next page exists."""
        return self._has_more


class KeyPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """A paginator that counts only if necessary: the last page and a single page need no count."""

    def page(self, number: Any) -> Page[Any]:
        """Return the page: one Query for one row more than the page shows."""
        try:
            position = int(number)
        except (TypeError, ValueError):  # since Python 3.11 also for more digits than int() accepts
            raise PageNotAnInteger(self.error_messages["invalid_page"]) from None
        if position < 1:
            raise EmptyPage(self.error_messages["min_page"])
        bottom = (position - 1) * self.per_page
        rows = list(self.object_list[bottom : bottom + self.per_page + 1])
        if position > 1 and not rows:
            raise EmptyPage(self.error_messages["no_results"])
        if len(rows) <= self.per_page:
            self.__dict__["count"] = bottom + len(rows)  # fills Paginator's cached property
        return KeyPage(rows[: self.per_page], position, self, has_more=len(rows) > self.per_page)

    def get_page(self, number: object) -> Page[Any]:
        """Return the nearest page for an invalid number, as in Django, without an early count."""
        try:
            return self.page(number)
        except PageNotAnInteger:
            return self.page(1)
        except EmptyPage:
            return self.page(self.num_pages)

    def _check_object_list_is_ordered(self) -> None:
        """Emit no warning: every Query returns items in the order of its key (private to Django)."""
