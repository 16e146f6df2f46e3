"""A walk over pages during concurrent writes returns every untouched object exactly once.

``PAGES_EXAMPLES`` sets the number of walks (50 in a normal run, 100 in a deep one).
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Q
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import AlreadyExists
from dynamo_single.table import Request, get_table
from tests.catalog.models import Entry
from tests.deep import examples

EXAMPLES = examples(8, 100, "PAGES_EXAMPLES")

SHELVES = ["a", "a#b", "b"]
SLOTS = [-11, -2, 0, 1, 10, 11, 100]
TITLES = ["A", "A B", "AB", "B", "b"]
SCORES = [-1, 0, 2, 2.5]
Key = tuple[str, int]

#: A query, and the orders that a key supports.
QUESTIONS: list[tuple[str, Any, list[tuple[str, ...]]]] = [
    ("a partition", lambda found: found.filter(shelf="a"), [(), ("slot",), ("-slot",)]),
    ("a range", lambda found: found.filter(shelf="a", slot__gt=-2), [(), ("-slot",)]),
    ("a filtered partition", lambda found: found.filter(shelf="a", title__gt="A"), [(), ("slot",), ("-slot",)]),
    ("partitions", lambda found: found.filter(shelf__in=SHELVES), [(), ("slot",), ("-slot",), ("shelf", "slot")]),
    ("filtered partitions", lambda found: found.filter(shelf__in=SHELVES, score__gte=0), [(), ("slot",), ("-slot",)]),
    ("ranges", lambda found: found.filter(shelf__in=SHELVES, slot__range=(-2, 11)), [(), ("slot",), ("-slot",)]),
    ("below", lambda found: found.filter(shelf__in=SHELVES, slot__lt=10), [(), ("slot",), ("-slot",)]),
    ("an index", lambda found: found.filter(title__isnull=False, title__gte="A B"), [(), ("title",), ("-title",)]),
    (
        "partitions of an index",
        lambda found: found.filter(shelf__in=SHELVES, score__isnull=False).using_index("by_score"),
        [(), ("score",), ("-score",)],
    ),
    (
        "keys",
        lambda found: found.filter(shelf__in=SHELVES, slot__in=SLOTS),
        [(), ("slot", "shelf"), ("-slot",)],
    ),
    ("filtered keys", lambda found: found.filter(shelf__in=SHELVES, slot__in=SLOTS, title="A"), [(), ("-slot",)]),
    ("one key", lambda found: found.filter(shelf="a", slot=0), [(), ("slot",)]),
    ("an or", lambda found: found.filter(Q(shelf="a") | Q(title__startswith="A")), [()]),
    ("an or with keys", lambda found: found.filter(Q(shelf="a", slot__in=SLOTS) | Q(title__gte="A B")), [()]),
    (
        "an or in order",
        lambda found: found.filter(Q(title__range=("A", "AB")) | Q(title__range=("A B", "b"))),
        [("title",), ("-title",)],
    ),
    (
        "an or of two keys in order",
        lambda found: found.filter(Q(shelf__in=["a", "b"], score__gt=-1) | Q(shelf__in=["a", "a#b"])),
        [(), ("slot",), ("-slot",)],
    ),
    (
        "an or with single items in order",
        lambda found: found.filter(
            Q(shelf="a", slot=0) | Q(shelf="a#b", slot__in=[-2, 10, 100]) | Q(shelf="b", slot__gt=-2)
        ),
        [(), ("slot",), ("-slot",)],
    ),
    (
        "an or in an order of what is fixed",
        lambda found: found.filter(Q(shelf="a", slot=0) | Q(shelf="b", slot__gt=-2), title="A"),
        [("title",), ("title", "slot"), ("-title", "-slot", "shelf", "score")],
    ),
]
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "shelf": st.sampled_from(SHELVES),
            "slot": st.sampled_from(SLOTS),
            "title": st.none() | st.sampled_from(TITLES),
            "score": st.none() | st.sampled_from(SCORES),
            "state": st.sampled_from(["live", "live", "live", "deleted", "expired"]),
        }
    ),
    max_size=21,
    unique_by=lambda entry: (entry["shelf"], entry["slot"]),
)
WRITES = st.lists(
    st.tuples(
        st.sampled_from(["create", "delete", "trash", "rename"]),
        st.sampled_from(SHELVES),
        st.sampled_from(SLOTS),
        st.none() | st.sampled_from(TITLES),
    ),
    max_size=3,
)
WALK = st.fixed_dictionaries(
    {
        "question": st.integers(0, len(QUESTIONS) - 1),
        "order": st.integers(0, 3),
        "reverse": st.booleans(),
        "visibility": st.sampled_from(["objects", "objects", "all_objects"]),
        "sizes": st.lists(st.integers(1, 5), min_size=1, max_size=4),
        "budget": st.sampled_from([None, None, 1, 2, 4]),
        "writes": st.lists(WRITES, max_size=4),
    }
)


def ask(walk: dict[str, Any]) -> Any:
    """The queryset of a walk."""
    name, narrow, orders = QUESTIONS[walk["question"]]
    manager = "objects" if "index" in name or "or" in name.split() else walk["visibility"]
    order = orders[walk["order"] % len(orders)]
    found = narrow(getattr(Entry, manager)).order_by(*order)
    return found.reverse() if walk["reverse"] else found


def fill(entries: list[dict[str, Any]]) -> None:
    """Empty the table, expired items included, and store these."""
    for item in get_table().send(Request("Scan"))["Items"]:
        get_table().send(Request("DeleteItem", {"Key": {name: item[name] for name in ("pk", "sk")}}))
    for values in entries:
        attributes = {name: value for name, value in values.items() if name != "state"}
        gone = timezone.now() - timedelta(days=1) if values["state"] == "expired" else None
        stored = Entry.objects.create(**attributes, expires_at=gone)
        if values["state"] == "deleted":
            stored.delete()


def write(kind: str, shelf: str, slot: int, title: str | None) -> Key:
    """Write as another process, and return the key."""
    stored = Entry.all_objects.filter(shelf=shelf, slot=slot).first()
    if stored is None:
        if kind == "create":
            # An expired item may still hold the key.
            with suppress(AlreadyExists):
                Entry.objects.create(shelf=shelf, slot=slot, title=title, score=1)
    elif kind == "delete":
        stored.hard_delete()
    elif kind == "trash":
        stored.delete()
    elif kind == "rename":
        stored.title, stored.score = title, 0
        stored.save()
    return shelf, slot


def keys(page: Any) -> list[Key]:
    """Return the identities of a page's objects."""
    return [(entry.shelf, entry.slot) for entry in page]


def budget_of(queryset: Any, walk: dict[str, Any]) -> int | None:
    """The walk's budget, if the query can have one."""
    plan = queryset._plan()
    if walk["budget"] is None or (plan.kind == "union" and plan.query.ordering):
        return None
    least = len(plan.conditions) if plan.merge == "sort_key" else 1
    return max(walk["budget"], least)


@pytest.mark.usefixtures("table")
@given(entries=ENTRIES, walk=WALK)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_what_is_left_alone_is_given_once(entries: list[dict[str, Any]], walk: dict[str, Any]) -> None:
    """Forwards with writes between the pages, then back again: each untouched object comes once, and in its place."""
    fill(entries)
    queryset = ask(walk)
    budget = budget_of(queryset, walk)
    expected = keys(queryset)
    touched: set[Key] = set()
    writes = list(walk["writes"])

    sizes = walk["sizes"] * 100
    page = queryset.page(sizes.pop(), max_requests=budget)
    assert page.previous_cursor is None
    forwards = [keys(page)]
    while page.has_next:
        if writes:
            touched |= {write(*each) for each in writes.pop()}
        size = sizes.pop()
        page = queryset.page(size, page.next_cursor, max_requests=budget)
        assert len(page) == size or page.ended_by_budget or not page.has_next
        forwards.append(keys(page))
    untouched = [key for key in expected if key not in touched]
    given_forwards = [key for each in forwards for key in each]
    text = queryset.explain()
    assert [key for key in given_forwards if key not in touched] == untouched, text

    # There are no more writes, so the way back returns the current objects.
    now = keys(queryset)
    backwards = [keys(page)]
    while page.has_previous:
        size = sizes.pop()
        page = queryset.page(size, page.previous_cursor, max_requests=budget)
        assert len(page) == size or page.ended_by_budget or not page.has_previous
        backwards.insert(0, keys(page))
    given_backwards = [key for each in backwards for key in each]
    assert [key for key in given_backwards if key not in touched] == untouched, text
    if not touched:
        assert given_backwards == now == given_forwards, text


@pytest.mark.usefixtures("table")
@given(entries=ENTRIES, walk=WALK, place=st.integers(0, 20), size=st.integers(1, 5))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_pages_begin_and_end_at_any_object(
    entries: list[dict[str, Any]], walk: dict[str, Any], place: int, size: int
) -> None:
    """An object's cursors lead to the objects after and before it, without the object."""
    fill(entries)
    queryset = ask(walk)
    objects = list(queryset)
    if not objects:
        return
    place %= len(objects)
    behind = queryset.page(size, queryset.cursor_for(objects[place]))
    before = queryset.page(size, queryset.cursor_for(objects[place], before=True))
    text = queryset.explain()
    assert keys(behind) == keys(objects[place + 1 : place + 1 + size]), text
    assert keys(before) == keys(objects[max(place - size, 0) : place]), text
    assert behind.has_next is (place + 1 + size < len(objects))
    assert before.has_previous is (place - size > 0)
    assert behind.has_previous
    assert before.has_next
