"""``explain(execute=True)`` shows the cost of each request; without it, the plan shows expected requests."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from dynamo_single.exceptions import NoAccessPattern, NotSupported
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Order, Sample

pytestmark = pytest.mark.usefixtures("table")


def executed(queryset: Any) -> list[str]:
    """Return the lines about requests, without times."""
    text = re.sub(r"\d+\.\d ms", "… ms", queryset.explain(execute=True))
    return [line.strip() for line in text.splitlines() if re.match(r"  (sent|along|then|total) ", line)]


@pytest.fixture
def people(table: Any) -> None:
    """Two companies with two people each."""
    for company_id in ("c1", "c2"):
        Company.objects.create(company_id=company_id, name=company_id)
        for name in ("Anna", "Mike"):
            Person.objects.create(company_id=company_id, person_id=f"{name}-{company_id}", name=name)


@pytest.mark.usefixtures("people")
def test_a_query_tells_what_a_filter_left_out() -> None:
    """Two items are read for one result, and the plan above is the same as without execution."""
    queryset = Person.objects.filter(company="c1", name="Anna")
    with assert_requests(0):
        before = queryset.explain()
    with assert_requests(["Query"]):
        text = queryset.explain(execute=True)
    assert text.startswith(before + "\n")
    assert executed(queryset) == [
        "sent      Query: 2 items read, 1 returned, 0.5 read units, … ms",
        "total     1 request (1 Query), 2 items read, 1 returned, 0.5 read units, … ms: 1 result",
    ]


@pytest.mark.usefixtures("people")
def test_what_is_read_along_is_told() -> None:
    """The plan announces reads of references and children, and the execution counts them."""
    with assert_requests(0):
        text = Person.objects.select_related("company").prefetch_related("company__offices").explain()
    assert text.splitlines()[-2:] == [
        "  then      select_related('company'): one request for each 100 objects of each reference",
        "  then      prefetch_related('company__offices'): depends on the objects; explain(execute=True) lists its "
        "requests",
    ]
    assert executed(Person.objects.select_related("company"))[1:] == [
        "sent      Query: 4 items read, 4 returned, 0.5 read units, … ms",
        "along     BatchGetItem: 2 items read, 2 returned, 1 read unit, … ms",
        "total     2 requests (1 Query, 1 BatchGetItem), 6 items read, 6 returned, 1.5 read units, … ms: 4 results",
    ]
    assert executed(Company.objects.prefetch_related("people"))[1:] == [
        "sent      Query: 2 items read, 2 returned, 0.5 read units, … ms",
        "along     Query: 2 items read, 2 returned, 0.5 read units, … ms",
        "along     Query: 2 items read, 2 returned, 0.5 read units, … ms",
        "total     3 requests (3 Query), 6 items read, 6 returned, 1.5 read units, … ms: 2 results",
    ]


@pytest.mark.usefixtures("people")
def test_children_of_the_same_query_are_not_announced() -> None:
    """An object and its children that one Query reads need nothing afterwards."""
    queryset = Company.objects.filter(pk="c1").prefetch_related("people")
    assert "prefetch_related" not in queryset.explain()
    with assert_requests(["Query"]):
        lines = executed(queryset)
    assert lines[0] == "sent      Query: 3 items read, 3 returned, 0.5 read units, … ms"
    assert lines[-1].endswith(": 1 result")


@pytest.mark.usefixtures("people")
def test_values_and_slices_are_executed_as_they_are() -> None:
    """Rows count as results, a slice sends its own requests, and select_related() does not affect rows."""
    assert executed(Person.objects.select_related("company").values("name")[:3])[-1].endswith(": 3 results")
    assert executed(Person.objects.order_by("name")[:1]) == [
        "sent      Query: 1 item read, 1 returned, 0.5 read units, … ms",
        "total     1 request (1 Query), 1 item read, 1 returned, 0.5 read units, … ms: 1 result",
    ]


@pytest.mark.usefixtures("people")
def test_the_queryset_itself_stays_unevaluated() -> None:
    """The queryset does not keep the results of the explanation."""
    queryset = Person.objects.filter(company="c1")
    with assert_requests(["Query", "Query"]):
        queryset.explain(execute=True)
        assert len(queryset) == 2


def test_nothing_is_sent_for_nothing() -> None:
    """An empty queryset does not send requests."""
    with assert_requests(0):
        assert executed(Order.objects.none()) == ["total     no requests: 0 results"]


def test_many_requests_are_counted() -> None:
    """More than twenty requests are only counted, and the total includes them."""
    with assert_requests(["Query"] * 30):
        lines = executed(Order.objects.filter(customer__in=[str(number) for number in range(30)]))
    assert len(lines) == 22
    assert lines[20] == "sent      … and 10 more"
    assert lines[21].startswith("total     30 requests (30 Query), 0 items read")


def test_a_refused_query_is_refused() -> None:
    """Without a key there is nothing to execute."""
    with assert_requests(0), pytest.raises(NoAccessPattern):
        Order.objects.filter(status="open").explain(execute=True)


@pytest.mark.parametrize("options", [{"format": "json"}, {"analyze": True}])
def test_other_options_are_refused(options: dict[str, Any]) -> None:
    """Options of SQL databases raise an error."""
    with pytest.raises(NotSupported, match="options other than execute=True"):
        Order.objects.all().explain(**options)


@pytest.mark.usefixtures("people")
def test_the_asynchronous_twin_executes_too() -> None:
    """``aexplain()`` takes the option along."""
    text = asyncio.run(Person.objects.filter(company="c1").aexplain(execute=True))
    assert "  sent      Query: 2 items read" in text


def test_a_batch_is_told_request_by_request() -> None:
    """The list contains batches in threads, with the items of each."""
    Sample.objects.create(sample_id="s1")
    lines = executed(Sample.objects.filter(pk__in=[f"s{number}" for number in range(150)]))
    assert sorted(lines[:2]) == [
        "sent      BatchGetItem: 0 items read, 0 returned, 25 read units, … ms",
        "sent      BatchGetItem: 1 item read, 1 returned, 50 read units, … ms",
    ]
