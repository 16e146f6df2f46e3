"""Pages on the real engine: contents, requests and invalid cursors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Count, F, OuterRef, Q, Subquery, Window
from django.db.models.functions import RowNumber, Upper
from django.utils import timezone

from dynamo_single.exceptions import InvalidCursor, InvalidValue, NotSupported
from dynamo_single.table import SentRequest
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Employee, Entry, Order, Ticket

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def companies(table: Any) -> None:
    """Seven companies, c0 to c6, named A to G; the odd ones have a ticker."""
    for number, name in enumerate("ABCDEFG"):
        Company.objects.create(company_id=f"c{number}", name=name, stock="T" if number % 2 else None)


@pytest.fixture
def orders(table: Any) -> None:
    """Five orders of each of two customers, with the same numbers."""
    for number in range(5):
        for customer in ("x", "y"):
            Order.objects.create(customer=customer, number=number, status="sent" if number % 2 else "open")


def names(page: Any) -> str:
    """The names of a page's companies."""
    return "".join(company.name for company in page)


def pks(page: Any) -> list[str]:
    """Return the identities of a page's objects."""
    return [each.pk for each in page]


def walk(queryset: Any, size: int, **options: Any) -> list[Any]:
    """All pages, forwards."""
    pages = [queryset.page(size, **options)]
    while pages[-1].has_next:
        pages.append(queryset.page(size, pages[-1].next_cursor, **options))
    return pages


def walk_back(queryset: Any, page: Any, size: int, **options: Any) -> list[Any]:
    """All pages before a page, the nearest first."""
    pages = []
    while page.has_previous:
        page = queryset.page(size, page.previous_cursor, **options)
        pages.append(page)
    return pages


def limits(sent: list[SentRequest]) -> list[Any]:
    """Return the maximum number of items in each request."""
    return [request.params.get("Limit") for request in sent]


# what a page is


@pytest.mark.usefixtures("companies")
def test_a_page_is_a_sequence() -> None:
    """A page has a length, items, slices and a truth value, and shows its cost."""
    page = Company.objects.page(3)
    assert (len(page), page[0].name, page[-1].name, names(page[1:]), names(page)) == (3, "A", "C", "BC", "ABC")
    assert (page.has_next, page.has_previous, page.previous_cursor, page.ended_by_budget) == (True, False, None, False)
    assert (page.requests, page.consumed) == (1, 0.5)
    assert page.items[0] in page
    assert not Company.objects.none().page(3)


@pytest.mark.usefixtures("companies")
def test_without_a_filter_a_page_is_one_request(sent: list[SentRequest]) -> None:
    """Each page reads one item more than it gives, forwards and backwards."""
    queryset = Company.objects.all()
    pages = walk(queryset, 3)
    assert [names(page) for page in pages] == ["ABC", "DEF", "G"]
    assert [names(page) for page in walk_back(queryset, pages[-1], 3)] == ["DEF", "ABC"]
    assert [request.operation for request in sent] == ["Query"] * 5
    assert limits(sent) == [4] * 5
    assert [request.params.get("ScanIndexForward", True) for request in sent] == [True, True, True, False, False]


@pytest.mark.usefixtures("companies")
def test_a_page_that_is_just_full_is_the_last() -> None:
    """Seven objects are one page of seven, without an empty next page."""
    assert [len(page) for page in walk(Company.objects.all(), 7)] == [7]


@pytest.mark.usefixtures("companies")
def test_a_page_is_filled_whatever_the_filter_leaves_out(sent: list[SentRequest]) -> None:
    """The page reads four times as many items each time, until it has one more match than it holds."""
    queryset = Company.objects.filter(stock="T")
    pages = walk(queryset, 1)
    assert [names(page) for page in pages] == ["B", "D", "F"]
    assert limits(sent) == [2, 8, 2, 8, 2, 8]
    sent.clear()
    assert [names(page) for page in walk_back(queryset, pages[-1], 2)] == ["BD"]
    assert limits(sent) == [3, 12]


@pytest.mark.usefixtures("companies")
def test_pages_go_both_ways_with_any_size() -> None:
    """The size of a page may change from page to page; a way back ends at the first object."""
    first = Company.objects.page(2)
    second = Company.objects.page(4, first.next_cursor)
    assert names(second) == "CDEF"
    before = Company.objects.page(1, second.previous_cursor)
    assert (names(before), before.has_previous, before.has_next) == ("B", True, True)
    earliest = Company.objects.page(5, before.previous_cursor)
    assert (names(earliest), earliest.has_previous) == ("A", False)
    assert names(Company.objects.page(2, earliest.next_cursor)) == "BC"


@pytest.mark.usefixtures("companies")
def test_reverse_and_orders_have_pages() -> None:
    """A reversed queryset and a descending order start at the other end."""
    for queryset in (Company.objects.reverse(), Company.objects.order_by("-name")):
        pages = walk(queryset, 3)
        assert [names(page) for page in pages] == ["GFE", "DCB", "A"]
        assert [names(page) for page in walk_back(queryset, pages[-1], 3)] == ["DCB", "GFE"]


# several streams


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ((), ["x0 x1 x2", "x3 x4 y0", "y1 y2 y3", "y4"]),
        (("number",), ["x0 y0 x1", "y1 x2 y2", "x3 y3 x4", "y4"]),
        (("-number",), ["y4 x4 y3", "x3 y2 x2", "y1 x1 y0", "x0"]),
        (("-customer", "number"), ["y0 y1 y2", "y3 y4 x0", "x1 x2 x3", "x4"]),
    ],
)
def test_pages_over_several_partitions(order: Any, expected: list[str]) -> None:
    """They come in the order of the whole query, and the way back gives the same pages."""
    queryset = Order.objects.filter(customer__in=["x", "y"]).order_by(*order)
    pages = walk(queryset, 3)
    assert [" ".join(f"{each.customer}{each.number}" for each in page) for page in pages] == expected
    assert [pks(page) for page in walk_back(queryset, pages[-1], 3)] == [pks(page) for page in pages[-2::-1]]


@pytest.mark.usefixtures("orders")
def test_partitions_that_follow_each_other_are_read_as_they_are_needed(sent: list[SentRequest]) -> None:
    """A page takes one request, or two if it spans two partitions."""
    pages = walk(Order.objects.filter(customer__in=["x", "y"]), 3)
    assert [page.requests for page in pages] == [1, 2, 1, 1]
    assert limits(sent) == [4, 4, 2, 4, 4]


@pytest.mark.usefixtures("orders")
def test_partitions_that_are_merged_are_read_from_the_position_on(sent: list[SentRequest]) -> None:
    """Each page reads each partition once from the last position, without duplicates."""
    pages = walk(Order.objects.filter(customer__in=["x", "y"]).order_by("number"), 3)
    assert [page.requests for page in pages] == [2, 2, 2, 2]
    read = [request.response["Count"] for request in sent if request.response]
    # In front of y there may be the order of the same number that the page before gave.
    assert read == [4, 4, 3, 4, 3, 2, 0, 1]


@pytest.mark.usefixtures("companies")
def test_pages_of_keys(sent: list[SentRequest]) -> None:
    """A page reads as many keys as it holds, in order, and replaces missing ones."""
    queryset = Company.objects.filter(pk__in=["c5", "c9", "c8", "c7", "c1", "c0"])
    pages = walk(queryset, 2)
    assert [pks(page) for page in pages] == [["c5", "c1"], ["c0"]]
    assert [request.operation for request in sent] == ["BatchGetItem"] * 3
    assert [pks(page) for page in walk_back(queryset, pages[-1], 2)] == [["c5", "c1"]]


def test_a_long_page_of_keys_is_read_by_hundreds(sent: list[SentRequest]) -> None:
    """BatchGetItem takes a hundred keys."""
    assert len(Company.objects.filter(pk__in=[str(number) for number in range(250)]).page(200)) == 0
    assert [len(each.params["RequestItems"][each_table]["Keys"]) for each in sent for each_table in _tables(each)] == [
        100,
        100,
        50,
    ]


def _tables(request: SentRequest) -> list[str]:
    return list(request.params["RequestItems"])


@pytest.mark.usefixtures("companies")
def test_a_page_of_one_object() -> None:
    """A whole key is one GetItem, and the only page."""
    with assert_requests(["GetItem"]):
        page = Company.objects.filter(pk="c1").page(10)
    assert (names(page), page.has_next, page.has_previous) == ("B", False, False)


@pytest.mark.usefixtures("companies")
def test_a_scan_has_pages_forwards() -> None:
    """They are complete, but cannot go back, because DynamoDB cannot scan backwards."""
    queryset = Company.objects.using_index("primary").filter(stock="T").allow_scan()
    pages = walk(queryset, 2)
    assert sorted(names(page) for page in pages for page in page.items and [page]) == sorted(map(names, pages))
    assert sorted("".join(map(names, pages))) == ["B", "D", "F"]
    assert [page.has_previous for page in pages] == [False, False]
    with pytest.raises(NotSupported, match="a scan can only be read forwards"):
        queryset.cursor_for(pages[0][0], before=True)
    assert names(queryset.page(5, queryset.cursor_for(pages[0][0]))) == names([*pages[0], *pages[1]][1:])


def test_pages_of_a_union() -> None:
    """Any page contains the results of several keys once, in order."""
    for slot, title in enumerate("ABCDEF"):
        Entry.objects.create(shelf="s" if slot % 2 else "t", slot=slot, title=title)
    unordered = Entry.objects.filter(Q(shelf="s") | Q(title__startswith="B") | Q(title__gte="E"))
    ordered = Entry.objects.filter(Q(title__range=("A", "C")) | Q(title__range=("B", "F"))).order_by("-title")
    for queryset, expected in ((unordered, "BDFE"), (ordered, "FEDCBA")):
        assert queryset._plan().kind == "union"
        for size in (1, 2, 3):
            pages = walk(queryset, size)
            assert "".join(each.title or "" for page in pages for each in page) == expected
            back = walk_back(queryset, pages[-1], size)
            assert [pks(page) for page in back] == [pks(page) for page in pages[-2::-1]]


def test_a_page_of_an_ordered_union_reads_on_from_the_position(sent: list[SentRequest]) -> None:
    """Each key is read from the position of the cursor instead of its start."""
    for slot in range(40):
        Entry.objects.create(shelf="s" if slot % 2 else "t", slot=slot, title=f"{slot:02}")
    queryset = Entry.objects.filter(Q(title__startswith="0") | Q(title__startswith="2") | Q(title__gte="30"))
    queryset = queryset.order_by("title")
    pages = walk(queryset, 5)
    assert [each.slot for page in pages for each in page] == [*range(10), *range(20, 40)]
    sent.clear()
    page = queryset.page(3, queryset.cursor_for(pages[2][1]))
    assert [each.slot for each in page] == [22, 23, 24]
    # Objects that start with 0 are finished, and objects that start with 2 are read after the object.
    assert [(request.params["Limit"], request.response["ScannedCount"]) for request in sent] == [(4, 4), (5, 5)]


@pytest.mark.usefixtures("orders")
def test_single_items_of_an_ordered_union_are_read_until_they_are_passed(sent: list[SentRequest]) -> None:
    """A key before the position is not read again, in either direction."""
    single = Order.objects.filter(Q(customer="x", number=1) | Q(customer="y", number__gt=1)).order_by("number")
    expected = ["x~~1", "y~~2", "y~~3", "y~~4"]
    for size in (1, 2):
        for way in (single, single.reverse()):
            pages = walk(way, size)
            assert [pk for page in pages for pk in pks(page)] == (expected if way is single else expected[::-1])
            back = walk_back(way, pages[-1], size)
            assert [pks(page) for page in back] == [pks(page) for page in pages[-2::-1]]
    cursor = single.page(1).next_cursor
    sent.clear()
    assert pks(single.page(1, cursor)) == ["y~~2"]
    assert [request.operation for request in sent] == ["Query"]


# writes between the pages


@pytest.mark.usefixtures("companies")
def test_the_object_at_a_cursor_may_be_gone() -> None:
    """A cursor is a position: its object may be renamed, in the trash, or permanently deleted."""
    for change in ("renamed", "trash", "gone"):
        page = Company.objects.page(2)
        last = page[-1]
        if change == "renamed":
            last.name = "Z"
            last.save()
        elif change == "trash":
            last.delete()
        else:
            last.hard_delete()
        behind = Company.objects.page(2, page.next_cursor)
        assert behind[0].name > page[0].name
        assert last.pk not in pks(behind)
        assert names(Company.objects.page(2, behind.previous_cursor)) == page[0].name


@pytest.mark.usefixtures("companies")
def test_a_page_whose_objects_went_leads_back() -> None:
    """An empty page at the end has a previous one, and an empty page at the beginning a next one."""
    first = Company.objects.page(5)
    for company in Company.objects.filter(name__gt="E"):
        company.delete()
    end = Company.objects.page(5, first.next_cursor)
    assert (len(end), end.has_next, end.has_previous) == (0, False, True)
    back = Company.objects.page(5, end.previous_cursor)
    assert (names(back), back.has_next, back.has_previous) == ("ABCDE", False, False)

    second = Company.objects.page(3, Company.objects.page(2).next_cursor)
    for company in Company.objects.filter(name__lt="C"):
        company.delete()
    beginning = Company.objects.page(2, second.previous_cursor)
    assert (len(beginning), beginning.has_next, beginning.has_previous) == (0, True, False)
    again = Company.objects.page(3, beginning.next_cursor)
    assert (names(again), again.has_previous) == ("CDE", False)


def test_no_page_gives_what_has_expired_or_is_in_the_trash() -> None:
    """A page is filled with results, whatever is between them."""
    yesterday = timezone.now() - timedelta(days=1)
    for number in range(6):
        Ticket.objects.create(code=f"t{number}", expires_at=yesterday if number % 2 else None)
    assert [[each.code for each in page] for page in walk(Ticket.objects.all(), 2)] == [["t0", "t2"], ["t4"]]
    for number in range(4):
        person = Person.objects.create(company_id="c", person_id=f"p{number}", name="N")
        if number < 2:
            person.delete()
    assert pks(Person.objects.filter(company="c").page(2)) == ["c~~p2", "c~~p3"]
    assert [pks(page) for page in walk(Person.deleted_objects.all(), 1)] == [["c~~p0"], ["c~~p1"]]
    assert [pks(page) for page in walk(Person.all_objects.filter(company="c"), 3)] == [
        ["c~~p0", "c~~p1", "c~~p2"],
        ["c~~p3"],
    ]


def test_equal_keys_of_an_index_are_each_given_once() -> None:
    """Items that have one and the same key on an index stay apart, in both directions, over partitions too."""
    for shelf in ("s", "t"):
        for slot in range(5):
            Entry.objects.create(shelf=shelf, slot=slot, title="same", score=1)
    employees = [Employee.objects.create(firm_id=f"f{number % 3}", employee_id=f"e{number}") for number in range(6)]
    for queryset in (
        Entry.objects.filter(title="same"),
        Employee.objects.filter(employee_id__in=[each.employee_id for each in employees]).order_by("firm"),
        Employee.objects.filter(employee_id__in=[each.employee_id for each in employees]).order_by("-firm"),
        # A limit that DynamoDB cannot express next to another one.
        Employee.objects.filter(employee_id__in=[each.employee_id for each in employees], firm__lt="f2").order_by(
            "firm"
        ),
        Entry.objects.filter(Q(title="same", shelf="s") | Q(title="same", shelf="t") | Q(title="z")).order_by("title"),
        Entry.objects.filter(Q(title="same", shelf="s") | Q(title="same", shelf="t") | Q(title="z")).order_by("-title"),
    ):
        for size in (1, 2, 4):
            pages = walk(queryset, size)
            assert [each for page in pages for each in pks(page)] == pks(queryset)
            back = walk_back(queryset, pages[-1], size)
            assert [pks(page) for page in back] == [pks(page) for page in pages[-2::-1]]


# a budget


def test_a_budget_ends_a_page(sent: list[SentRequest], companies: None) -> None:
    """After a number of requests, the page ends with its results, and the cursor continues from there."""
    sent.clear()
    queryset = Company.objects.filter(stock="-")
    pages = walk(queryset, 2, max_requests=1)
    assert [(len(page), page.ended_by_budget, page.requests) for page in pages] == [
        (0, True, 1),
        (0, True, 1),
        (0, False, 1),
    ]
    assert limits(sent) == [3, 3, 3]
    back = walk_back(queryset, pages[-1], 2, max_requests=2)
    assert [(len(page), page.ended_by_budget, page.requests) for page in back] == [(0, False, 2)]


@pytest.mark.usefixtures("companies")
def test_a_budget_loses_nothing() -> None:
    """Together, shortened pages contain all results, forwards and backwards."""
    for queryset in (
        Company.objects.filter(stock="T"),
        Company.objects.filter(pk__in=["x", "c1", "y", "z", "c3", "c4", "v", "w", "c5"], stock="T"),
        Company.objects.filter(pk__in=["c1", "x", "y", "c3"]),
        Person.objects.filter(company__in=["c0", "c1", "c2"]),
        Company.objects.filter(Q(pk__in=["x", "c1", "y"]) | Q(name__in=["D", "F"], stock="T")),
    ):
        expected = pks(queryset)
        pages = walk(queryset, 1, max_requests=1)
        assert [each for page in pages for each in pks(page)] == expected
        assert any(page.ended_by_budget for page in pages)
        back = walk_back(queryset, pages[-1], 1, max_requests=1)
        assert [each for page in [pages[-1], *back] for each in pks(page)[::-1]] == expected[::-1]


@pytest.mark.usefixtures("companies")
def test_a_page_that_a_budget_left_empty_leads_both_ways() -> None:
    """Its previous page ends at the end of the read, and its next page starts there."""
    queryset = Company.objects.filter(name__in=["A", "G"], stock=None).using_index("by_name")
    first = queryset.page(1)
    assert names(first) == "A"
    empty = queryset.page(1, first.next_cursor, max_requests=1)
    assert (names(empty), empty.ended_by_budget) == ("", True)
    assert names(queryset.page(1, empty.previous_cursor)) == "A"
    last = queryset.page(1, empty.next_cursor)
    assert names(last) == "G"
    empty = queryset.page(1, last.previous_cursor, max_requests=1)
    assert (names(empty), empty.ended_by_budget) == ("", True)
    assert names(queryset.page(1, empty.next_cursor)) == "G"
    assert names(queryset.page(1, empty.previous_cursor)) == "A"


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("order", ["number", "-number"])
def test_a_budget_of_merged_partitions(order: str) -> None:
    """A merge stops at the position of its slowest partition, without losses or duplicates."""
    queryset = Order.objects.filter(customer__in=["x", "y"], status="sent").order_by(order)
    expected = pks(queryset)
    pages = walk(queryset, 1, max_requests=2)
    assert [each for page in pages for each in pks(page)] == expected
    assert {page.requests for page in pages} == {2}
    assert any(page.ended_by_budget for page in pages)
    back = walk_back(queryset, pages[-1], 1, max_requests=2)
    assert [each for page in [pages[-1], *back] for each in pks(page)[::-1]] == expected[::-1]


@pytest.mark.usefixtures("orders")
def test_a_budget_that_cannot_make_a_page_is_refused() -> None:
    """The first object needs all partitions; the message contains the number of requests."""
    queryset = Order.objects.filter(customer__in=["x", "y", "z"]).order_by("number")
    with (
        assert_requests(0),
        pytest.raises(InvalidValue, match=r"max_requests=2: .* 3 partitions in parallel, .* at least 3 requests"),
    ):
        queryset.page(2, max_requests=2)
    union = Entry.objects.filter(Q(title__startswith="3") | Q(title__range=("5", "7"))).order_by("title")
    with assert_requests(0), pytest.raises(NotSupported, match="max_requests is not supported if several keys"):
        union.page(2, max_requests=9)


# other shapes and prefetched objects


@pytest.mark.usefixtures("companies")
def test_rows_have_pages() -> None:
    """Pages of ``values()`` and ``values_list()`` work like pages of objects."""
    pages = walk(Company.objects.values_list("name", flat=True), 3)
    assert [list(page) for page in pages] == [["A", "B", "C"], ["D", "E", "F"], ["G"]]
    assert Company.objects.values("stock").page(2).items == ({"stock": None}, {"stock": "T"})


@pytest.mark.usefixtures("companies")
def test_objects_that_are_read_in_part_have_pages() -> None:
    """``only()`` does not affect the order, but a cursor needs a complete object."""
    pages = walk(Company.objects.only("name"), 4)
    assert [names(page) for page in pages] == ["ABCD", "EFG"]
    with pytest.raises(NotSupported, match="Read the object without only"):
        Company.objects.all().cursor_for(pages[0][0])


def test_related_objects_are_read_for_the_page_only() -> None:
    """A BatchGetItem reads the references of a page, and a Query each company's people; both count."""
    for number in range(3):
        company = Company.objects.create(company_id=f"c{number}", name=f"N{number}")
        Person.objects.create(company=company, person_id="p", name="Anna")
    people = Person.objects.filter(company__in=["c0", "c1", "c2"]).select_related("company")
    with assert_requests(["Query", "Query", "Query", "BatchGetItem"]):
        page = people.page(2)
        assert [person.company.name for person in page] == ["N0", "N1"]
    assert page.requests == 4
    with assert_requests(["Query", "Query", "Query"]):
        companies = Company.objects.prefetch_related("people").page(2)
        assert [len(company.people.all()) for company in companies] == [1, 1]
    assert companies.requests == 3
    with assert_requests(["Query"]):
        assert [each.company.pk for each in company.people.page(2)] == ["c2"]


@pytest.mark.usefixtures("companies")
def test_the_asynchronous_twin() -> None:
    """``apage()`` is ``page()`` in a thread."""

    async def read() -> tuple[Any, Any]:
        first = await Company.objects.apage(2)
        return first, await Company.objects.all().apage(2, first.next_cursor, max_requests=3)

    first, second = asyncio.run(read())
    assert (names(first), names(second), second.requests) == ("AB", "CD", 1)


# cursors of objects


@pytest.mark.usefixtures("companies")
def test_a_page_from_any_object(sent: list[SentRequest]) -> None:
    """The cursors of an object lead to the pages after and before it, without a request."""
    queryset = Company.objects.all()
    company = Company.objects.get(pk="c3")
    sent.clear()
    behind, before = queryset.cursor_for(company), queryset.cursor_for(company, before=True)
    assert sent == []
    assert names(queryset.page(2, behind)) == "EF"
    assert names(queryset.page(2, before)) == "BC"
    assert names(Company.objects.filter(pk__in=["c1", "c3", "c5"]).page(2)) == "BD"
    keyed = Company.objects.filter(pk__in=["c1", "c3", "c5"])
    assert names(keyed.page(2, keyed.cursor_for(company))) == "F"
    assert names(keyed.page(2, keyed.cursor_for(company, before=True))) == "B"


FOREIGN: list[tuple[str, Callable[[], Any], Callable[[], Any], str]] = [
    ("another model", lambda: Company.objects.all(), lambda: Order(customer="x", number=1), "takes an object of"),
    ("not stored", lambda: Company.objects.all(), lambda: Company(name="New"), "it is not stored"),
    ("filtered out", lambda: Company.objects.filter(stock="T"), lambda: Company.objects.get(pk="c0"), "is not one of"),
    (
        "out of range",
        lambda: Company.objects.filter(name__gt="B"),
        lambda: Company.objects.get(pk="c0"),
        "is not one of",
    ),
    ("another partition", lambda: Person.objects.filter(company="c1"), lambda: person(), "is not one of"),
    ("another key", lambda: Company.objects.filter(pk="c1"), lambda: Company.objects.get(pk="c0"), "is not one of"),
    ("deleted", lambda: Company.deleted_objects.all(), lambda: Company.objects.get(pk="c0"), "is not one of"),
    ("of nothing", lambda: Company.objects.none(), lambda: Company.objects.get(pk="c0"), "is not one of"),
]


def person() -> Person:
    """Return a person of the first company."""
    return Person.objects.create(company_id="c0", person_id="p", name="Anna")


@pytest.mark.usefixtures("companies")
@pytest.mark.parametrize(("name", "queryset", "obj", "said"), FOREIGN, ids=[each[0] for each in FOREIGN])
def test_only_the_querysets_own_objects_have_cursors(
    name: str, queryset: Callable[[], Any], obj: Callable[[], Any], said: str
) -> None:
    """An object that the queryset does not give has no place in it."""
    found = obj()
    with assert_requests(0), pytest.raises(InvalidValue, match=said):
        queryset().cursor_for(found)


# refused


@pytest.mark.usefixtures("companies")
def test_a_cursor_of_another_query_is_refused_before_anything_is_sent() -> None:
    """Changed, foreign and invented cursors are detected without a request."""
    text = Company.objects.page(2).next_cursor or ""
    for queryset, cursor in (
        (Company.objects.filter(stock="T"), text),
        (Company.objects.reverse(), text),
        (Person.objects.all(), text),
        (Company.objects.all(), text.replace(text[3], "A" if text[3] != "A" else "B", 1)),
        (Company.objects.all(), "2"),
    ):
        with assert_requests(0), pytest.raises(InvalidCursor, match="Start again without a cursor"):
            queryset.page(2, cursor)
    assert names(Company.objects.page(2, "")) == "AB"


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("wrap", [lambda condition: condition, lambda condition: ~Q(~condition)])
def test_a_set_is_asked_for_in_one_order(wrap: Callable[[Q], Q]) -> None:
    """A cursor is valid in a process with another order of the set's members."""
    one_way, other_way = {0, 8}, {8, 0}
    assert list(one_way) != list(other_way)
    numbers, same_numbers = (
        Order.objects.filter(wrap(Q(customer__in=("x", "y"), number__in=members))) for members in (one_way, other_way)
    )
    cursor = numbers.page(1).next_cursor
    assert pks(numbers.page(1, cursor)) == pks(same_numbers.page(1, cursor)) == ["y~~0"]


@pytest.mark.parametrize("size", [0, -1, 1001, 2.0, "20", True, None])
def test_a_size_that_is_none_is_refused(size: Any) -> None:
    """A page has from 1 to 1000 objects."""
    with assert_requests(0), pytest.raises(InvalidValue, match="size must be an integer, from 1 to 1000"):
        Company.objects.page(size)


@pytest.mark.parametrize("budget", [0, -1, 1.5, "3", True])
def test_a_budget_that_is_none_is_refused(budget: Any) -> None:
    """At least one request is required."""
    with assert_requests(0), pytest.raises(InvalidValue, match="max_requests must be an integer, 1 or more"):
        Company.objects.page(2, max_requests=budget)


def test_what_is_put_in_order_in_memory_has_no_pages() -> None:
    """The order is known only after a complete read."""
    for queryset in (
        Company.objects.order_by("stock").allow_in_memory(10),
        Company.objects.filter(pk__in=["c0", "c1"]).order_by("stock").allow_in_memory(10),
    ):
        with assert_requests(0), pytest.raises(NotSupported, match="page\\(\\) is not supported after allow_in_memory"):
            queryset.page(2)
        with assert_requests(0), pytest.raises(NotSupported, match="Slice the list of all objects"):
            queryset.cursor_for(Company())


@pytest.mark.parametrize(
    "queryset",
    [
        lambda: Company.objects.values("stock").distinct(),
        lambda: Company.objects.allow_in_memory(10).values("stock").annotate(number=Count("pk")),
        lambda: Company.objects.allow_in_memory(10).annotate(number=Count("pk")),
        lambda: Company.objects.allow_in_memory(10).dates("created_at", "year"),
    ],
)
def test_what_is_computed_has_no_pages(queryset: Callable[[], Any]) -> None:
    """Groups, distinct rows and dates are known only after every match is read."""
    with assert_requests(0), pytest.raises(NotSupported, match="is not supported for computed results"):
        queryset().page(2)


@pytest.mark.parametrize("order", ["firm", "-firm"])
def test_a_budget_may_end_at_a_strict_bound(order: str) -> None:
    """If the last item read is the excluded limit, the read is complete."""
    for number in range(4):
        Employee.objects.create(firm_id=f"f{number}", employee_id="e", name="x")
        Employee.objects.create(firm_id=f"f{number}", employee_id="g", name="y")
    queryset = Employee.objects.filter(employee_id__in=["e", "g"], firm__lt="f2", name="x").order_by(order)
    pages = walk(queryset, 1, max_requests=2)
    assert [each for page in pages for each in pks(page)] == pks(queryset)
    back = walk_back(queryset, pages[-1], 1, max_requests=2)
    assert [each for page in [pages[-1], *back] for each in pks(page)[::-1]] == pks(queryset)[::-1]


def test_a_slice_has_no_pages() -> None:
    """A page has a size and a cursor of its own."""
    with assert_requests(0), pytest.raises(TypeError, match="once a slice has been taken"):
        Company.objects.all()[:3].page(2)
    with assert_requests(0), pytest.raises(TypeError, match="once a slice has been taken"):
        Company.objects.all()[:3].cursor_for(Company())


#: Pages of results that are computed for each object; a page had left the computed values out.
COMPUTED: dict[str, Callable[[Any], Any]] = {
    "annotation": lambda people: people.annotate(x=Upper("name")).values_list("x", flat=True),
    "annotated objects": lambda people: people.annotate(x=Upper("name")).only("person_id"),
    "subquery": lambda people: people.allow_in_memory().annotate(
        x=Subquery(Company.objects.filter(pk=OuterRef("company")).values("name")[:1])
    ),
    "alias": lambda people: people.alias(x=F("name")).values_list("name", flat=True),
    "attribute of a referenced object": lambda people: people.values_list("company__name", flat=True),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_pages_have_computed_results(companies: None, name: str) -> None:
    for number in range(3):
        Person.objects.create(company_id="c1", person_id=f"p{number}", name=f"n{number}")
    asked = COMPUTED[name](Person.objects.filter(company="c1"))
    first = asked.page(2)
    found = [getattr(each, "x", each) for each in (*first, *asked.page(2, first.next_cursor))]
    assert found == [getattr(each, "x", each) for each in asked]


@pytest.mark.parametrize(
    "ask",
    [
        lambda found: found.annotate(x=Window(RowNumber())),
        lambda found: found.annotate(x=Upper("name")).order_by("x"),
        lambda found: found.annotate(x=Upper("name")).filter(x="A").order_by("x"),
    ],
)
def test_pages_of_results_that_depend_on_others_are_refused(companies: None, ask: Callable[[Any], Any]) -> None:
    asked = ask(Company.objects.allow_in_memory())
    with pytest.raises(NotSupported, match=r"page\(\) does not support results"):
        asked.page(2)
