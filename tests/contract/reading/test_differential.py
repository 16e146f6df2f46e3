"""A queryset returns the same result as a Python list for any query, or raises an error.

``DIFFERENTIAL_EXAMPLES`` sets the number of queries (40 in a normal run, 100 in a deep one).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db.models import Q
from django.test import override_settings
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import NoAccessPattern, NotSupported
from dynamo_single.table import Request, Table, get_table
from dynamo_single.testing import setup_table
from tests.catalog.kinds import KINDS
from tests.catalog.models import Entry
from tests.deep import examples

EXAMPLES = examples(8, 100, "DIFFERENTIAL_EXAMPLES")
START = datetime(2024, 1, 1, tzinfo=UTC)

# Few values, so that conditions match; separators and escape characters, to test keys.
SHELVES = st.sampled_from(["a", "a#b", "b"])
SLOTS = st.sampled_from([-11, -2, 0, 1, 10, 11, 100])
TITLES = st.sampled_from(["A", "A B", "AB", "A#", "A$", "a", "B"])
SCORES = st.sampled_from([Decimal("-1.5"), Decimal(0), Decimal("0.001"), Decimal(2), Decimal(10)])
MOMENTS = st.sampled_from([START, START + timedelta(milliseconds=1), START + timedelta(days=40)])

ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "shelf": SHELVES,
            "slot": SLOTS,
            "title": st.none() | TITLES,
            "score": st.none() | SCORES,
            "seen_at": st.none() | MOMENTS,
            "state": st.sampled_from(["live", "live", "deleted", "expired", "expires later"]),
        }
    ),
    max_size=12,
    unique_by=lambda entry: (entry["shelf"], entry["slot"]),
)

Test = Callable[[Any, Any], bool]
ORDERINGS: dict[str, Test] = {
    "lt": lambda value, bound: value is not None and value < bound,
    "lte": lambda value, bound: value is not None and value <= bound,
    "gt": lambda value, bound: value is not None and value > bound,
    "gte": lambda value, bound: value is not None and value >= bound,
}
LOOKUPS: dict[str, Test] = {
    "exact": lambda value, other: value == other,
    **ORDERINGS,
    "in": lambda value, members: value in members,
    "range": lambda value, bounds: value is not None and bounds[0] <= value <= bounds[1],
    "isnull": lambda value, wanted: (value is None) == wanted,
    "startswith": lambda value, start: value is not None and value.startswith(start),
}


def conditions(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, str, Any]]:
    """Draw one condition: an attribute, a lookup and an operand."""
    operands = {
        "in": st.lists(values, max_size=3),
        "range": st.tuples(values, values),
        "isnull": st.booleans(),
        "startswith": st.sampled_from(["", "A", "A ", "A#", "a"]),
    }
    lookups = [lookup for lookup in LOOKUPS if lookup != "startswith" or name in {"title", "shelf"}]
    return st.sampled_from(lookups).flatmap(
        lambda lookup: st.tuples(st.just(name), st.just(lookup), operands.get(lookup, values))
    )


CONDITION = st.one_of(
    conditions("shelf", SHELVES),
    conditions("slot", SLOTS),
    conditions("title", TITLES),
    conditions("score", SCORES),
    conditions("seen_at", MOMENTS),
)
QUESTION = st.fixed_dictionaries(
    {
        "all": st.lists(CONDITION, max_size=3),
        "shelf": st.none() | SHELVES,
        "none": st.lists(CONDITION, max_size=1),
        "any": st.lists(st.lists(CONDITION, min_size=1, max_size=2), max_size=3),
        "order": st.sampled_from(
            [
                (),
                (),
                ("slot",),
                ("-slot",),
                ("title",),
                ("score",),
                ("-score", "-slot"),
                ("seen_at", "slot"),
                ("shelf",),
            ]
        ),
        "visibility": st.sampled_from(["objects", "objects", "all_objects", "deleted_objects"]),
        "slice": st.none() | st.tuples(st.integers(0, 3), st.integers(0, 5)),
        "size": st.integers(1, 5),
    }
)


def ask(question: dict[str, Any], model: Any) -> Any:
    """Return the queryset of a query."""
    found = getattr(model, question["visibility"]).all()
    if question["shelf"] is not None:
        found = found.filter(shelf=question["shelf"])
    for name, lookup, operand in question["all"]:
        found = found.filter(**{f"{name}__{lookup}": operand})
    for name, lookup, operand in question["none"]:
        found = found.exclude(**{f"{name}__{lookup}": operand})
    alternatives = Q()
    for together in question["any"]:
        alternative = Q()
        for name, lookup, operand in together:
            alternative &= Q(**{f"{name}__{lookup}": operand})
        alternatives |= alternative
    return found.filter(alternatives).order_by(*question["order"])


def answer(question: dict[str, Any], entries: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return the keys that match the query in a list."""
    wanted = {"objects": {"live"}, "deleted_objects": {"deleted"}, "all_objects": {"live", "deleted"}}
    states = wanted[question["visibility"]]
    if question["visibility"] != "deleted_objects":
        states |= {"expires later"}

    def holds(entry: dict[str, Any], condition: tuple[str, str, Any]) -> bool:
        name, lookup, operand = condition
        return LOOKUPS[lookup](entry[name], operand)

    found = [
        entry
        for entry in entries
        if entry["state"] in states
        and question["shelf"] in (None, entry["shelf"])
        and all(holds(entry, condition) for condition in question["all"])
        and not any(holds(entry, condition) for condition in question["none"])
        and (not question["any"] or any(all(holds(entry, each) for each in together) for together in question["any"]))
    ]
    for name in reversed(question["order"]):
        found.sort(key=lambda entry: (entry[name.lstrip("-")] is None, entry[name.lstrip("-")]), reverse=name[0] == "-")
    return [(entry["shelf"], entry["slot"]) for entry in found]


@pytest.fixture(scope="module")
def kinds(engine: Table) -> Iterator[Table]:
    """The table of the models that have other keys, on the same engine."""
    declared = django_settings.DYNAMO_SINGLE
    place = {**declared["default"], "TABLE_NAME": "kinds"}
    with override_settings(DYNAMO_SINGLE={**declared, "kinds": place}):
        yield setup_table("kinds")


def fill(entries: list[dict[str, Any]], model: Any) -> None:
    """Empty the model's table, expired items included, and store these."""
    table = get_table(model._options.alias)
    for item in table.send(Request("Scan"))["Items"]:
        table.send(Request("DeleteItem", {"Key": {name: item[name] for name in ("pk", "sk")}}))
    add(entries, model)


def add(entries: list[dict[str, Any]], model: Any) -> None:
    """Store these as objects of a model."""
    times = {"expired": timezone.now() - timedelta(days=1), "expires later": timezone.now() + timedelta(days=1)}
    for values in entries:
        attributes = {name: value for name, value in values.items() if name != "state"}
        if hasattr(model, "expires_at"):
            attributes["expires_at"] = times.get(values["state"])
        stored = model.objects.create(**attributes)
        if values["state"] == "deleted":
            stored.delete()


def possible(entries: list[dict[str, Any]], model: Any) -> list[dict[str, Any]]:
    """Return the entries that a model can store: it may have no trash or expiry."""
    found = entries
    if not hasattr(model, "expires_at"):
        found = [{**each, "state": each["state"].replace("expires later", "live")} for each in found]
        found = [{**each, "state": "live" if each["state"] == "expired" else each["state"]} for each in found]
    if not hasattr(model, "deleted_at"):
        found = [{**each, "state": "live" if each["state"] == "deleted" else each["state"]} for each in found]
    return found


def key(entry: Any) -> tuple[str, int]:
    """Return the identity of an entry."""
    return entry.shelf, entry.slot


@pytest.mark.usefixtures("table", "kinds")
@given(
    models=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)) | st.just((Entry, Entry)),
    entries=ENTRIES,
    questions=st.lists(QUESTION, min_size=1, max_size=10),
)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_a_queryset_and_a_list_agree(
    models: tuple[Any, Any], entries: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    """The results are equal, in the same order if the query has one.

    The model is any of several with the same attributes and different keys, next to items of other models.
    """
    model, neighbour = models
    mine, others = possible(entries, model), possible(entries, neighbour)
    if model is neighbour:
        fill(mine, model)
    else:
        fill(others, neighbour)
        add(mine, model)
    for question in questions:
        if not hasattr(model, "deleted_at"):
            question = {**question, "visibility": "objects"}
        queryset = ask(question, model)
        try:
            found = [key(entry) for entry in queryset]
        except NotSupported:
            queryset = queryset.order_by().allow_scan()
            question = {**question, "order": ()}
            found = [key(entry) for entry in queryset]
        expected = answer(question, mine)
        compare(question, queryset, found, expected)


def compare(
    question: dict[str, Any], queryset: Any, found: list[tuple[str, int]], expected: list[tuple[str, int]]
) -> None:
    """Compare the results, the count and one slice of the queryset and the list."""
    text = queryset.explain()
    assert sorted(found) == sorted(expected), text
    assert queryset.count() == len(expected), text
    assert queryset.exists() is bool(expected), text
    if question["order"]:
        values = [dict(zip(("shelf", "slot"), each, strict=True)) for each in found]
        assert len(values) == len(expected)
        by_rank = [order_of(question, each) for each in queryset]
        assert by_rank == sorted(by_rank, reverse=question["order"][0][0] == "-"), text
    try:
        assert walked(queryset, question["size"]) == found, text
    except NoAccessPattern:
        assert " in memory" in text  # sorted results have no pages, unless a key has their order
    if question["slice"]:
        start, length = question["slice"]
        assert [key(entry) for entry in queryset[start : start + length]] == found[start : start + length], text


def walked(queryset: Any, size: int) -> list[tuple[str, int]]:
    """Return the results of the queryset page by page."""
    found: list[tuple[str, int]] = []
    cursor = None
    while True:
        page = queryset.page(size, cursor)
        found += [key(entry) for entry in page]
        cursor = page.next_cursor
        if cursor is None:
            return found


def order_of(question: dict[str, Any], entry: Any) -> tuple[Any, ...]:
    """Return the values that determine an entry's order."""
    return tuple(getattr(entry, name.lstrip("-")) for name in question["order"])
