"""The rows of a list that an admin page keeps in memory. They are read once, up to a bound, for many queries.

``share_rows()`` starts the sharing for a page. The querysets of its admins then use the shared rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import HttpRequest
from msgspec.structs import replace

from dynamo_single.admin.references import is_exact
from dynamo_single.admin.types import DynamoModelAdmin
from dynamo_single.exceptions import NotSupported, TooManyMatches
from dynamo_single.orm.plan.advice import propose_key, query_text
from dynamo_single.orm.plan.constraints import constraints_of
from dynamo_single.orm.plan.plan import DEFAULT_BYTES
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import objects
from dynamo_single.orm.results.cached_lists import CachedLists
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import run

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList

#: The most rows that are counted for a list without a bound in memory, and the most rows, related objects or choices
#: that a page reads besides the rows of its list.
MAX_OTHERS: Final = 2000
#: No item has fewer bytes: its keys and its type alone have as many.
_LEAST_BYTES: Final = 50
_NAME = "_dynamo_single_held"
#: The mark of a request whose rows in memory have exceeded the bytes.
_HEAVY = "_dynamo_single_heavy"


class ListTooLarge(NotSupported):
    """A query on a list that is too large for memory and has no suitable key. This exception stays inside the admin."""

    def __init__(self, changelist: ChangeList) -> None:
        super().__init__("")
        self.changelist = changelist


def limit_of(model_admin: Any) -> int:
    """Return how many rows a list may keep in memory; 0 for none. Without an option, ``list_max_bytes`` decides."""
    if not has_row_limit(model_admin):
        return max_bytes_of(model_admin) // _LEAST_BYTES
    return int(getattr(model_admin, "list_max_in_memory", 0))


def has_row_limit(model_admin: Any) -> bool:
    """Return whether the rows of a list are bounded by their number, besides their bytes."""
    return getattr(model_admin, "list_max_in_memory", 0) is not None


def others_limit_of(model_admin: Any) -> int:
    """Return how many related objects a list reads for a filter, how many choices it offers, and the rows of a step."""
    return min(limit_of(model_admin), MAX_OTHERS)


def max_bytes_of(model_admin: Any) -> int:
    """Return how many bytes a list may keep in memory, by default as many as ``allow_in_memory()`` allows."""
    return int(getattr(model_admin, "list_max_bytes", None) or DEFAULT_BYTES)


def share_rows(request: HttpRequest) -> None:
    """Let the querysets of a request share their rows."""
    request.__dict__[_NAME] = {}


def ensure_shared_rows(request: HttpRequest) -> None:
    """Let the querysets of a request share their rows unless they already do. For lists in a project's own views."""
    if _NAME not in request.__dict__:
        share_rows(request)


def with_cache(request: object, model_admin: Any, queryset: Any) -> Any:
    """Return a queryset that may use the shared rows; unchanged if the page has none."""
    cached_lists = request.__dict__.get(_NAME)
    limit = limit_of(model_admin)
    if not hasattr(queryset, "_asked"):
        queryset = queryset.all()  # a project's own get_queryset() may return a manager
    if cached_lists is None or not limit:
        return queryset
    mine = cached_lists.setdefault(model_admin.opts.label_lower, CachedLists(limit, max_bytes_of(model_admin)))
    asked = queryset._asked
    if asked.in_memory is not None:
        mine.limit = min(limit, asked.in_memory)
    return queryset if asked.cached_lists is mine else queryset._asking(replace(asked, cached_lists=mine))


def cache_of(queryset: Any) -> CachedLists | None:
    """Return the shared rows of a queryset."""
    found: CachedLists | None = queryset._asked.cached_lists
    return found


def without_cache(queryset: QuerySet[DynamoModel]) -> QuerySet[DynamoModel]:
    """Return a queryset that uses keys only."""
    return queryset._asking(replace(queryset._asked, cached_lists=None))


def read_rows(queryset: Any) -> None:
    """Read all rows of a queryset into memory unless they are there; raise ``TooManyMatches`` above the bound."""
    run(objects.read_into_memory(state_of(queryset.order_by())))


def action_rows(
    request: HttpRequest, model_admin: DynamoModelAdmin, queryset: QuerySet[DynamoModel]
) -> QuerySet[DynamoModel]:
    """Return the rows of an action as a queryset that keys serve, because rows in memory must not decide on writes.

    If the list was computed in memory, these are its rows by their primary keys.
    """
    if cache_of(queryset) is None:
        return queryset
    plain = without_cache(queryset).order_by()
    if request.POST.get("select_across", "0") not in ("0", "") and not is_exact(plain):
        keys = list(queryset.order_by().values_list("pk", flat=True))
    else:
        keys = None
    disable(request)
    if keys is None and _is_readable(plain):
        return plain
    rows = model_admin.get_queryset(request).order_by().with_visibility(queryset._asked.visibility)
    return rows if keys is None else rows.filter(pk__in=keys)


def _is_readable(queryset: QuerySet[DynamoModel]) -> bool:
    """Return whether DynamoDB can compare by the conditions once the rows are selected by their keys."""
    try:
        state_of(queryset)
    except NotSupported:
        return False
    return True


def count_rows(model_admin: Any, queryset: Any) -> int:
    """Return the number of rows, from memory or by one Query; raise ``TooManyMatches`` above the bound."""
    if cache_of(queryset) is None:
        queryset = _with_own_cache(model_admin, queryset, limit_of(model_admin) or MAX_OTHERS)
    return int(queryset.count())


def read_for_search(request: HttpRequest, model_admin: Any, queryset: Any) -> Any:
    """Return a queryset with its rows in memory, in a view that does not share rows: such as a package's own search.

    Sends the Query of the rows. Returns the queryset unchanged above the bound, and in a view of this app, which has
    decided whether to share rows.
    """
    if _NAME in request.__dict__ or not limit_of(model_admin):
        return queryset
    found = _with_own_cache(model_admin, queryset, limit_of(model_admin))
    try:
        read_rows(found)
    except (TooManyMatches, NotSupported):
        return queryset
    return found


def _with_own_cache(model_admin: Any, queryset: Any, limit: int) -> Any:
    return queryset._asking(replace(queryset._asked, cached_lists=CachedLists(limit, max_bytes_of(model_admin))))


def disable(request: HttpRequest) -> object:
    """Stop sharing rows for the rest of this request; return what ``enable()`` accepts to share them again."""
    request.__dict__[_HEAVY] = _has_heavy(request)
    shared = request.__dict__.get(_NAME)
    request.__dict__[_NAME] = None
    return shared


def enable(request: HttpRequest, shared: object) -> None:
    """Share rows again."""
    request.__dict__[_NAME] = shared


def is_disabled(request: HttpRequest) -> bool:
    """Return whether sharing was stopped because of too many rows."""
    return _NAME in request.__dict__ and request.__dict__[_NAME] is None


def is_exceeded_by(queryset: Any) -> bool:
    """Return whether an attempt to hold the rows of a queryset's own model has exceeded the bound."""
    cached_lists = cache_of(queryset)
    return cached_lists is not None and cached_lists.is_exceeded


def is_exceeded(request: HttpRequest) -> bool:
    """Return whether any queryset of the request has too many rows."""
    return any(cached_lists.is_exceeded for cached_lists in (request.__dict__.get(_NAME) or {}).values())


def is_heavy(request: HttpRequest, model_admin: Any) -> bool:
    """Return whether bytes are the bound that the rows of the request's querysets exceed, rather than rows."""
    return _has_heavy(request) or not has_row_limit(model_admin)


def _has_heavy(request: HttpRequest) -> bool:
    shared = request.__dict__.get(_NAME) or {}
    return bool(request.__dict__.get(_HEAVY)) or any(cached_lists.is_heavy for cached_lists in shared.values())


def cached_row_count(request: HttpRequest) -> int | None:
    """Return how many rows the page used from memory; ``None`` if keys supported all queries."""
    found = [cached_lists for cached_lists in (request.__dict__.get(_NAME) or {}).values() if cached_lists.is_used]
    return sum(cached_lists.rows for cached_lists in found) if found else None


def missing_key(queryset: QuerySet[DynamoModel]) -> str:
    """Return why no key alone supports a queryset, the key that would, and what the existing keys would filter."""
    try:
        state = state_of(queryset)
        query = state.query()
    except NotSupported as error:  # a comparison or an order that only Python supports; the message has the alternative
        return str(error)
    constraints = constraints_of(query.where, query.layout)
    proposal = propose_key(query, constraints) if constraints is not None else None
    advice = f"\nA key that supports it, for {state.layout.label}.Keys:\n  {proposal}" if proposal else ""
    return f"{state.label}: no single key supports {query_text(query)}.{advice}"
