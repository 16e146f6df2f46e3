"""Looking through a large list for what no key answers: step by step, by those who ask for it, within a budget.

A step reads what the list's own key gives from where the last one ended, or the table where no key lists the model, and
compares in Python. Where it ended, and what was read so far, goes along in the address, signed for the user: nothing is
stored, so that whoever stops asking has stopped it, and nobody can make others go on.
"""

from __future__ import annotations

from typing import Any

from django.core import signing
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest
from django.utils.translation import gettext as _
from msgspec import Struct

from dynamo_single.admin.kinds import KeyChangeList
from dynamo_single.admin.lists import holding
from dynamo_single.admin.references import is_exact
from dynamo_single.costs import measure_requests
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import related
from dynamo_single.orm.schema.kinds import DynamoModel

#: The parameter that says where a step begins; empty for the first one.
SCAN_VAR = "scan"
#: How many rows are read at a time, and at most how many requests that takes.
_CHUNK = 250
_MAX_REQUESTS = 5
_SALT = "dynamo_single.admin.scanning"


class Progress(Struct, frozen=True):
    """Where a look through a list is: the next step's cursor, what was read, found and paid so far.

    ``is_over`` says why it ended: there is nothing left, or the budget is used up.
    """

    cursor: str = ""
    read: int = 0
    found: int = 0
    requests: int = 0
    units: float = 0.0
    budget: int = 0
    is_over: bool = False

    @property
    def is_at_the_end(self) -> bool:
        """Whether everything was looked at."""
        return self.is_over and not self.cursor


def place(request: HttpRequest, progress: Progress | None = None) -> str:
    """The progress as it stands in an address, signed for the user; without one, the place to begin at."""
    values = progress or Progress()
    found = [values.cursor, values.read, values.found, values.requests, values.units]
    return signing.dumps(found, salt=_salt(request))


def begun(request: HttpRequest, text: str) -> Progress:
    """The progress that an address holds; one that was changed, or given to another user, is a wrong request.

    Without one it is the first step, which anybody can link to. Only a place of ours goes on by itself.
    """
    if not text:
        return Progress()
    try:
        return Progress(*signing.loads(text, salt=_salt(request)))
    except (signing.BadSignature, ValueError) as error:
        raise SuspiciousOperation("The place in a list is not one that this site gave.") from error


def _salt(request: HttpRequest) -> str:
    return f"{_SALT}:{request.user.pk}"


def budget_of(model_admin: Any) -> int:
    """How many items one look through a list reads at most; 0 if there is none."""
    return int(getattr(model_admin, "list_scan_budget", None) or 0)


def step(changelist: KeyChangeList, wanted: int, before: Progress) -> tuple[list[Any], Progress]:
    """The next rows, ``wanted`` or a few more if there are so many, and how far that went.

    It reads as many items as a list may hold, or a few more, or what is left of the budget.
    """
    queryset, limit = changelist.queryset, holding.limit_of(changelist.model_admin) or _CHUNK
    budget = budget_of(changelist.model_admin)
    (source, is_listed), condition = _source(changelist), _condition(queryset)
    found: list[Any] = []
    cursor, read, looked = before.cursor, before.read, 0
    with measure_requests() as costs:
        while True:
            page = source.page(_CHUNK, cursor or None, max_requests=_MAX_REQUESTS)
            found += [row for row in page if matches(condition, form_of(type(row)).upgraded(row._stored))]
            cursor, looked = page.next_cursor or "", looked + len(page)
            # Of a whole table, what other models have there is looked through as well.
            read = before.read + (looked if is_listed else costs.items_read)
            if not cursor or len(found) >= wanted or read - before.read >= limit or read >= budget:
                break
    related.fetch(found, state_of(queryset).along)
    progress = Progress(
        cursor,
        read,
        before.found + len(found),
        before.requests + costs.requests,
        before.units + costs.read_units,
        budget,
        is_over=not cursor or read >= budget,
    )
    return found, progress


def _source(changelist: Any) -> tuple[Any, bool]:
    """What is looked through: the rows that the filters leave, if a key answers these; else all, by a key or the table.

    The second value says whether a key lists them.
    """
    filtered = changelist.without_search()
    everything = changelist.root_queryset.with_visibility(filtered._asked.visibility)
    for queryset in (filtered, everything):
        plain = holding.detached(queryset).order_by()
        if is_exact(plain):
            return plain, True
    return holding.detached(everything).order_by().allow_scan(), False


def _condition(queryset: QuerySet[DynamoModel]) -> Condition:
    state = state_of(queryset)
    return lower(state.where, state.layout)


def words_for(progress: Progress, name: object, *, is_costed: bool) -> str:
    """How far it is, for those who wait; what was read and what that cost is for users who see every row."""
    if not is_costed:
        return _("%(found)d %(name)s found.") % {"found": progress.found, "name": name}
    looked = _("%(read)d items looked through, of at most %(budget)d: %(found)d %(name)s found.")
    cost = _("%(requests)d requests, %(units)s units.")
    found = {"read": progress.read, "budget": progress.budget, "found": progress.found, "name": name}
    return f"{looked % found} {cost % {'requests': progress.requests, 'units': f'{progress.units:g}'}}"
