"""``|`` over several keys on a real engine: requests, order, and uniqueness."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from django.db.models import Q

from dynamo_single.exceptions import NoAccessPattern, NotSupported
from dynamo_single.table import SentRequest
from project.directory.models import Company, Person
from tests.catalog.models import Entry, Sample

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def companies() -> list[Company]:
    """Five companies, named A to E."""
    return [Company.objects.create(company_id=f"company-{name}", name=name) for name in "ABCDE"]


def operations(sent: list[SentRequest]) -> list[str]:
    """Return the operations sent."""
    return [request.operation for request in sent]


def names(found: Any) -> list[str]:
    """Return the names of the results."""
    return [company.name for company in found]


def test_each_side_is_read_by_its_own_key(companies: list[Company], sent: list[SentRequest]) -> None:
    """A key for one side and an index for the other are a GetItem and a Query, and an object of both comes once."""
    found = Company.objects.filter(Q(pk="company-B") | Q(name__startswith="B") | Q(name="D"))
    sent.clear()
    assert names(found) == ["B", "D"]
    assert operations(sent) == ["GetItem", "Query", "Query"]


def test_union_is_the_same_as_or(companies: list[Company], sent: list[SentRequest]) -> None:
    """``union()`` returns the results of all querysets without duplicates, and can have its own order."""
    first, second = Company.objects.filter(pk="company-C"), Company.objects.filter(name__lt="C").order_by("-name")
    assert names(first.union(second)) == ["C", "A", "B"]
    assert names(first.union(second).order_by("-name")) == ["C", "B", "A"]


@pytest.mark.parametrize("order", ["name", "-name"])
def test_parts_are_merged_in_order(companies: list[Company], order: str) -> None:
    """Items of several keys have the order of the query, also sliced and reversed."""
    found = Company.objects.filter(Q(pk="company-D") | Q(name__lt="C") | Q(name__gt="D")).order_by(order)
    expected = sorted("ABDE", reverse=order[0] == "-")
    assert names(found) == expected
    assert names(found[1:3]) == expected[1:3]
    assert names(found.reverse()) == expected[::-1]
    assert found.last().name == expected[-1]


@pytest.mark.parametrize(
    ("name", "value"),
    [("flag", True), ("blob", b"x"), ("words", {"a", "b"}), ("data", {"a": 1}), ("things", [1]), ("json", [1])],
)
def test_an_order_by_what_is_the_same_everywhere_orders_nothing(name: str, value: Any) -> None:
    """An attribute with one given value does not affect the order, whatever its type is."""
    for sample_id in "123":
        Sample.objects.create(sample_id=sample_id, **{name: value})
    either = Sample.objects.filter(Q(sample_id="3") | Q(sample_id__startswith="1") | Q(sample_id="2"))
    found = either.filter(**{name: value}).order_by(name)
    assert found._plan().kind == "union"
    assert [each.pk for each in found] == ["3", "1", "2"]
    first = found.page(2)
    assert [each.pk for each in (*first, *found.page(2, first.next_cursor))] == ["3", "1", "2"]


def test_what_differs_and_has_no_order_is_not_merged() -> None:
    """If the sides have different values, only numbers and strings that a key can contain are sortable."""
    for first, second, name in ((True, False, "flag"), (b"x", b"y", "blob"), ({"a"}, {"b"}, "words")):
        either = Q(sample_id="1", **{name: first}) | Q(sample_id__startswith="2", **{name: second})
        with pytest.raises(NoAccessPattern):
            list(Sample.objects.filter(either).order_by(name))


def test_backwards_without_an_order_is_the_mirror_image(companies: list[Company]) -> None:
    """``reverse()`` of unordered parts returns the same objects in reverse."""
    found = Company.objects.filter(
        Q(pk="company-D") | Q(name__startswith="D") | Q(name__gt="C") | Q(name="A")
    ).order_by()
    assert names(found.reverse()) == names(found)[::-1]


def test_counting_and_asking_for_one(companies: list[Company]) -> None:
    """``count()``, ``exists()``, ``get()`` and ``first()`` look at each object once."""
    found = Company.objects.filter(Q(pk="company-D") | Q(name__gt="C"))
    assert (found.count(), found.exists(), found.first().name) == (2, True, "D")
    assert Company.objects.filter(Q(pk="company-D") | Q(name="D")).get().name == "D"


def test_a_slice_of_parts_that_overlap_is_full(companies: list[Company]) -> None:
    """Duplicates of an earlier part are skipped, and the later part is read until the slice is full."""
    found = Company.objects.filter(Q(name__lt="D") | Q(name__lt="E"))
    assert names(found[:4]) == ["A", "B", "C", "D"]


def test_live_and_deleted_objects_by_an_index(companies: list[Company], sent: list[SentRequest]) -> None:
    """A query for all objects with an index reads live ones there and deleted ones in the trash."""
    companies[1].delete()
    sent.clear()
    assert sorted(names(Company.all_objects.filter(name__lt="C"))) == ["A", "B"]
    assert operations(sent) == ["Query", "Query"]


def test_writing_through_an_alternation(companies: list[Company]) -> None:
    """``update()`` and ``delete()`` write each object that any side finds, once."""
    found = Company.objects.filter(Q(pk="company-A") | Q(name__lt="C"))
    assert found.update(stock="X") == 2
    assert found.delete() == (2, {"directory.Company": 2})
    assert names(Company.objects.all()) == ["C", "D", "E"]


def test_expired_items_are_on_no_side() -> None:
    """Each part excludes an expired item, which does not hide a live one."""
    Entry.objects.create(shelf="a", slot=1, title="A")
    found = Entry.objects.filter(Q(shelf="a") | Q(title="A"))
    assert [entry.slot for entry in found] == [1]


def test_prefetching_over_parts(companies: list[Company]) -> None:
    """Related objects are prefetched as in any queryset."""
    Person.objects.create(company=companies[0], name="Mike")
    found = Company.objects.filter(Q(pk="company-A") | Q(name="B")).prefetch_related("people")
    assert [[person.name for person in company.people.all()] for company in found] == [["Mike"], []]


def test_the_explanation_shows_every_part(companies: list[Company]) -> None:
    """``explain()`` shows the plan of each part."""
    text = Company.objects.filter(Q(pk="company-A") | Q(name="B")).explain()
    assert "part 1" in text
    assert "GetItem on primary" in text
    assert "Query on by_name" in text


def test_union_with_a_slice_has_the_objects_of_the_slice(companies: list[Company]) -> None:
    """The keys of the slice are read first, so the other part adds objects without moving the slice."""
    found = Company.objects.filter(name="C").union(Company.objects.order_by("name")[:1])
    assert {company.name for company in found} == {"A", "C"}


def test_union_of_rows_is_pickled_with_its_querysets(companies: list[Company]) -> None:
    """Django's query holds them."""
    asked = Company.objects.values("name").union(Company.objects.values("company_id"))[:20]
    again = Company.objects.all()
    again.query = pickle.loads(pickle.dumps(asked.query))
    assert len(again) == 10
    assert list(again) == list(asked)


REFUSALS = [
    (lambda: Company.objects.values("name")[:2] | Company.objects.values("name"), "slice of rows"),
    (lambda: list(Company.objects.all().union(Person.objects.all())), "have other columns"),
    (lambda: Company.objects.all() | Company.deleted_objects.all(), "different kinds"),
    (lambda: list(Company.objects.union(Company.objects.all(), all=True)), "holds all results in memory"),
]


@pytest.mark.parametrize(("union", "text"), REFUSALS)
def test_what_cannot_be_joined_is_refused(union: Any, text: str) -> None:
    """The error names slices of rows, other models, other kinds of objects and duplicates."""
    with pytest.raises(NotSupported, match=text):
        union()


def test_an_index_that_is_left_out_is_not_used(companies: list[Company]) -> None:
    """``without_index()`` excludes a key, and the error names it as the reason."""
    with pytest.raises(NotSupported, match=r"by_name .*: without_index\(\) leaves it out"):
        list(Company.objects.filter(name="A").without_index("by_name"))
    with pytest.raises(NotSupported, match="no key or index 'by_nam'"):
        list(Company.objects.without_index("by_nam"))
