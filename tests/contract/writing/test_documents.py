"""Two processes write one document: maps are saved by path, sets by member, lists as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import assert_requests
from dynamo_single.transactions import atomic
from tests.catalog.models import Sample
from tests.catalog.stocks import Stock
from tests.contract.tables import stored
from tests.deep import examples

pytestmark = pytest.mark.usefixtures("table")

MAP = {"a": 1, "inner": {"x": 1, "y": {"z": [1]}}, "list": [1, 2], "members": {"one"}}


def two(data: dict[str, Any] | None = None) -> tuple[Stock, Stock]:
    """Return two copies of one object."""
    Stock.objects.create(code="s", data=MAP if data is None else data)
    return Stock.objects.get(pk="s"), Stock.objects.get(pk="s")


def test_two_writers_of_different_places_keep_both() -> None:
    """Each sends one UpdateItem; who saved first does not lose."""
    one, other = two({})
    one.data["a"] = 1
    other.data["b"] = 2
    with assert_requests(["UpdateItem", "UpdateItem"]):
        one.save()
        other.save()
    assert Stock.objects.get(pk="s").data == {"a": 1, "b": 2}


def change(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Sets a place by its dotted name, or removes it for ``None``."""

    def work(data: dict[str, Any]) -> None:
        *outer, last = name.split(".")
        for step in outer:
            data = data[step]
        if value is None:
            del data[last]
        else:
            data[last] = value

    return work


BESIDE_EACH_OTHER = [
    (change("inner.x", 2), change("inner.y.z", [2])),
    (change("inner.x", None), change("inner.new", {"p": {"q": 1}})),
    (change("a", None), change("list", [3])),
    (change("members", {"two"}), change("inner.y.w", 1)),
    (change("a", "text"), change("list", None)),
]


@pytest.mark.parametrize(("mine", "theirs"), BESIDE_EACH_OTHER)
def test_changes_of_different_places_come_together(mine: Any, theirs: Any) -> None:
    """This applies to changed, removed and new elements at any depth."""
    one, other = two()
    expected = Stock.objects.get(pk="s").data
    for data in (one.data, expected):
        mine(data)
    for data in (other.data, expected):
        theirs(data)
    one.save()
    other.save()
    assert Stock.objects.get(pk="s").data == expected


IN_EACH_OTHERS_WAY = [
    (change("inner", None), change("inner.x", 2), "its map is gone"),
    (change("inner", "text"), change("inner.x", 2), "its map is a text"),
    (change("inner.x", 2), change("inner", None), "the map that is removed has changed"),
    (change("inner.x", 2), change("inner", 1), "the map that is replaced has changed"),
    (change("list", [1, 2, 3]), change("list", [1, 2, 4]), "a list is one value"),
    (change("members", {"one", "two"}), change("members", {"one", "three"}), "so is a set in a map"),
    (change("new", {"x": 1}), change("new", {"y": 1}), "both have made the map"),
    (change("new", [1]), change("new", [2]), "both have made the list"),
]


@pytest.mark.parametrize(
    ("mine", "theirs"), [row[:2] for row in IN_EACH_OTHERS_WAY], ids=[r[2] for r in IN_EACH_OTHERS_WAY]
)
def test_what_would_be_lost_is_stale(mine: Any, theirs: Any) -> None:
    """The second process's write fails completely, and the first one's is kept."""
    one, other = two()
    mine(one.data)
    theirs(other.data)
    one.save()
    with pytest.raises(StaleObject, match=r"data.*Reload it and make the change again"):
        other.save()
    assert Stock.objects.get(pk="s").data == one.data


def test_one_place_has_the_value_of_who_saved_last() -> None:
    """As for an attribute, the last save of an element is kept."""
    one, other = two()
    one.data["a"], other.data["a"] = 2, 3
    one.save()
    other.save()
    assert Stock.objects.get(pk="s").data["a"] == 3


NAMES = ["a.b", "a b", "#a", ":v", "ключ", "name", "0", "a[0]", '"', "x" * 300, "a__b", "\n"]


def test_names_of_any_kind(table: Table) -> None:
    """Expressions never contain names literally."""
    one, other = two({"kept": {}})
    for name in NAMES:
        one.data[name] = {"deep": name}
        other.data["kept"][name] = name
    one.save()
    other.save()
    found = Stock.objects.get(pk="s").data
    assert found == {**{name: {"deep": name} for name in NAMES}, "kept": {name: name for name in NAMES}}
    for name in NAMES:
        found[name]["deep"] = 1
    stock = Stock.objects.get(pk="s")
    stock.data = found
    stock.save()
    assert Stock.objects.get(pk="s").data == found


def test_a_whole_map_that_is_given_differs_by_place() -> None:
    """The result is the same for a changed element and for a new dict."""
    one, other = two()
    one.data = {**MAP, "a": 2}
    one.save()
    other.data = {**MAP, "new": 1}
    other.save()
    assert Stock.objects.get(pk="s").data == {**MAP, "a": 2, "new": 1}


LARGE = {
    "many places": {f"place{number}": number for number in range(400)},
    "many maps": {f"map{number}": {"x": number} for number in range(200)},
}


@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
def test_a_difference_that_is_too_large_writes_the_whole_map(large: dict[str, Any], sent: list[SentRequest]) -> None:
    """DynamoDB accepts 4 KB and 300 operators per expression; a larger change requires the loaded map."""
    one, other = two({name: {} if isinstance(value, dict) else 0 for name, value in large.items()})
    for data in (one.data, other.data):
        data.update({name: dict(value) if isinstance(value, dict) else value + 1 for name, value in large.items()})
        for name, value in large.items():
            if isinstance(value, dict):
                data[name]["y"] = 1
    one.save()
    assert Stock.objects.get(pk="s").data == one.data
    other.data["more"] = 1
    with pytest.raises(StaleObject, match="data"):
        other.save()
    assert Stock.objects.get(pk="s").data == one.data


@pytest.mark.parametrize(
    ("name", "before", "mine", "theirs"),
    [
        ("tags", [1], [1, 2], [1, 3]),
        ("tags", None, [1], [2]),
        ("data", None, {"a": 1}, {"b": 1}),
        ("json", {"a": 1}, {"a": 2}, {"a": 1, "b": 1}),
    ],
)
def test_what_has_no_places_is_written_if_it_is_as_it_was_read(name: str, before: Any, mine: Any, theirs: Any) -> None:
    """A list, JSON text, and a map that was not there."""
    name = {"tags": "things"}.get(name, name)
    Sample.objects.create(sample_id="s", **{name: before})
    one, other = Sample.objects.get(pk="s"), Sample.objects.get(pk="s")
    setattr(one, name, mine)
    setattr(other, name, theirs)
    one.save()
    with pytest.raises(StaleObject, match=name):
        other.save()
    assert getattr(Sample.objects.get(pk="s"), name) == mine


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ({"a", "b", "c"}, {"a", "b", "d"}, {"a", "b", "c", "d"}),
        ({"a"}, {"b"}, None),
        ({"a", "b", "c"}, {"a"}, {"a", "c"}),
        (None, {"a", "b", "x"}, {"x"}),
    ],
)
def test_a_set_gets_and_loses_members(mine: Any, theirs: Any, expected: Any) -> None:
    """Additions and removals of two processes are combined."""
    Stock.objects.create(code="s", labels={"a", "b"})
    one, other = Stock.objects.get(pk="s"), Stock.objects.get(pk="s")
    one.labels, other.labels = mine, theirs
    one.save()
    other.save()
    assert Stock.objects.get(pk="s").labels == expected


def test_a_set_that_gets_some_members_and_loses_others_is_written_whole() -> None:
    """DynamoDB cannot add and remove in one update, so the write requires the loaded set."""
    Stock.objects.create(code="s", labels={"a"})
    one, other = Stock.objects.get(pk="s"), Stock.objects.get(pk="s")
    one.labels, other.labels = {"b"}, {"c"}
    one.save()
    assert Stock.objects.get(pk="s").labels == {"b"}
    with pytest.raises(StaleObject, match="labels"):
        other.save()


GIVEN: dict[str, Callable[[Any], Any]] = {
    "update": lambda value: Stock.objects.filter(pk="s").update(data=value),
    "update of what is found": lambda value: Stock.objects.all().update(data=value),
    "bulk_create": lambda value: Stock.objects.bulk_create([Stock(code="s", data=value)], update_conflicts=True),
}


@pytest.mark.parametrize("write", GIVEN.values(), ids=GIVEN)
def test_a_document_that_is_given_as_a_value_is_written_whole(write: Callable[[Any], Any]) -> None:
    """The stored value does not matter."""
    two({"a": 1, "b": {"c": 1}})
    write({"b": {"d": 1}})
    assert Stock.objects.get(pk="s").data == {"b": {"d": 1}}


@pytest.mark.parametrize("name", ["update_fields", "bulk_update"])
def test_a_document_that_is_named_and_changed_is_written_by_place(name: str) -> None:
    """A named attribute is still written by path, so another process's elements are kept."""
    one, other = two({"a": 1})
    one.data["b"] = 1
    one.save()
    other.data["c"] = 1
    if name == "bulk_update":
        Stock.objects.bulk_update([other], ["data"])
    else:
        other.save(update_fields=["data"])
    assert Stock.objects.get(pk="s").data == {"a": 1, "b": 1, "c": 1}


def test_a_bulk_update_after_another_writers_key_keeps_places_by_place() -> None:
    """The write uses the changed key, and still contains only the difference from the loaded document."""
    one, other = two({"a": 1})
    one.data["b"], one.rank = 1, 5
    one.save()
    other.data["c"], other.rank = 1, 7
    assert Stock.objects.bulk_update([other], ["data", "rank"]) == 1
    found = Stock.objects.get(pk="s")
    assert (found.data, found.rank) == ({"a": 1, "b": 1, "c": 1}, 7)


def test_reloading_another_attribute_keeps_the_difference() -> None:
    """A save keeps elements that another process has added since."""
    one, other = two({"a": 1})
    one.data["b"] = 1
    one.save()
    other.data["c"] = 1
    other.refresh_from_db(fields=["qty"])
    other.save()
    assert Stock.objects.get(pk="s").data == {"a": 1, "b": 1, "c": 1}


def test_documents_in_a_block(sent: list[SentRequest]) -> None:
    """A block with one write sends one plain request, with and without documents."""
    one, other = two({"a": 1})
    one.data["b"] = 1
    other.data["c"] = 1
    sent.clear()
    with atomic():
        one.save()
    other.save()
    assert [request.operation for request in sent] == ["UpdateItem", "UpdateItem"]
    assert Stock.objects.get(pk="s").data == {"a": 1, "b": 1, "c": 1}


VALUES = st.recursive(
    st.one_of(st.integers(-3, 3), st.sampled_from(["", "x"]), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc"), inner, max_size=3), st.just({"s", "t"})
    ),
    max_leaves=8,
)
MAPS = st.dictionaries(st.sampled_from(["a", "b", "c.d", "0"]), VALUES, max_size=4)


@settings(max_examples=examples(8, 150))
@given(before=MAPS, after=MAPS)
def test_what_is_stored_is_what_the_object_holds(table: Table, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Without another writer, whatever became of a map."""
    Stock.objects.filter(pk="s").delete()
    stock = Stock.objects.create(code="s", data=before)
    stock.data = after
    stock.save()
    held = Stock._meta.get_field("data").attribute.to_attribute_value(after)
    assert normalized_value(stored(table)["STOCK#s"]["data"]) == normalized_value(held)
    with assert_requests(0):
        stock.save()


@settings(max_examples=examples(8, 100))
@given(before=MAPS, mine=MAPS, theirs=MAPS)
def test_two_writers_differences_commute(table: Table, before: Any, mine: Any, theirs: Any) -> None:
    """Differences of separate elements have the same result in any order."""
    results = []
    both = {"m": before, "t": before, "top": 1}
    for mine_first in (True, False):
        Stock.objects.filter(pk="s").delete()
        Stock.objects.create(code="s", data=both)
        one, other = Stock.objects.get(pk="s"), Stock.objects.get(pk="s")
        one.data["m"], other.data["t"] = mine, theirs
        for each in (one, other) if mine_first else (other, one):
            each.save()
        results.append(normalized_value(stored(table)["STOCK#s"]["data"]))
    held = Stock._meta.get_field("data").attribute.to_attribute_value({"m": mine, "t": theirs, "top": 1})
    assert results == [normalized_value(held)] * 2
