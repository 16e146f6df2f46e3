"""Objects and querysets pickled by an earlier version still work, because caches contain them during a deployment."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Count, Q

from dynamo_single import models
from tests.catalog.clubs import Club, Team
from tests.catalog.models import Order

#: Another release of Django may have pickled them, and this release reads each one.
pytestmark = pytest.mark.filterwarnings("ignore:Pickled .* instance's Django version:RuntimeWarning")

#: Pickles of version 0.1.0 from before its modules were renamed, compressed and as base64.
STORED: dict[str, str] = json.loads((Path(__file__).parent / "former_pickles.json").read_text())


def former(name: str) -> Any:
    """Load a former pickle."""
    return pickle.loads(zlib.decompress(base64.b64decode(STORED[name])))


def asked() -> Any:
    """Return the orders of a customer, from the first to the last."""
    return Order.objects.filter(customer="c").order_by("number")


QUERYSETS: dict[str, Callable[[], Any]] = {
    "query": asked,
    "query of conditions": lambda: Order.objects.filter(
        Q(customer="c"), Q(number__gte=1) | Q(status__in=["s0"]), ~Q(status="s9")
    ),
    "query with a limit": lambda: asked()[:2],
    "query reversed": lambda: asked().reverse(),
    "query with values": lambda: asked().values_list("status", "number"),
    "query grouped": lambda: (
        Order.objects.filter(customer="c").allow_in_memory().values("status").annotate(n=Count("number"))
    ),
    "query of dates": lambda: Club.objects.allow_in_memory().dates("created_at", "day"),
    "query deleted": lambda: Club.deleted_objects.all(),
    "query all": lambda: Club.all_objects.all(),
    "query none": lambda: Order.objects.none(),
    "query scan": lambda: Order.objects.allow_scan(),
    "query using index": lambda: asked().using_index(None),
    "query consistent": lambda: asked().consistent(),
    "query fetch mode": lambda: Team.objects.filter(club="club-1").fetch_mode(models.FETCH_PEERS),
    "query select_related": lambda: Team.objects.filter(club="club-1").select_related("club"),
}
OBJECTS: dict[str, Callable[[], Any]] = {
    "object from a list": lambda: asked()[0],
    "object by key": lambda: Order.objects.get(customer="c", number=1),
    "object deferred": lambda: asked()[0],
    "list evaluated": lambda: list(asked()),
    "rows": lambda: list(asked().values_list("status", "number")),
    "rows evaluated": lambda: list(asked().values("status")),
    "objects select_related": lambda: list(Team.objects.filter(club="club-1")),
    "objects prefetched": lambda: [Club.objects.get(pk="club-1")],
    "club": lambda: Club.objects.get(pk="club-1"),
    "team with peers": lambda: list(Team.objects.filter(club="club-1")),
}


@pytest.fixture(autouse=True)
def stored(table: object) -> None:
    """Store the objects that were in the table at the time."""
    for number in range(3):
        Order.objects.create(customer="c", number=number, status=f"s{number}")
    club = Club.objects.create(club_id="club-1", name="Chess")
    for number in range(2):
        Team.objects.create(club=club, team_id=f"t{number}")


@pytest.mark.parametrize("name", QUERYSETS)
def test_former_query_gives_the_same(name: str) -> None:
    """A former query loads, and works like a current one."""
    query = former(name)
    queryset = query.model._default_manager.all()
    queryset.query = query
    assert [str(each) for each in queryset] == [str(each) for each in QUERYSETS[name]()]


@pytest.mark.parametrize("name", OBJECTS)
def test_former_object_loads(name: str) -> None:
    """An object, or a list with its objects, is what it was."""
    found = former(name)
    assert (list(found) if isinstance(found, models.QuerySet) else found) == OBJECTS[name]()


def test_former_object_is_saved() -> None:
    """The object knows its stored state, so a save writes only changes."""
    order = former("object by key")
    order.status = "sent"
    order.save()
    assert Order.objects.get(customer="c", number=1).status == "sent"


def test_former_deferred_object_reads_the_rest() -> None:
    """The first access reads the omitted attribute."""
    assert former("object deferred").status == "s0"


def test_former_page_goes_on() -> None:
    """A page's cursor leads to the page after it."""
    page = former("page")
    assert [order.number for order in asked().page(2, page.next_cursor)] == [2]


def test_all_former_pickles_are_loaded() -> None:
    """Each stored one is in a table of this file, or in a test of its own."""
    assert set(STORED) == {*QUERYSETS, *OBJECTS, "object unsaved", "page"}
    assert former("object unsaved").number == 9
