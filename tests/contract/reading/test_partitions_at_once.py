"""Several partitions of one query are read in parallel, in the right order, and only if needed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import override_settings

from dynamo_single.conf import table_settings
from dynamo_single.exceptions import Throttled
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, intercept, refuse
from project.directory.models import Company, Person

COMPANIES = [f"c{number}" for number in range(8)]
#: After this many seconds, a Query without a parallel one raises an error; a busy machine takes far less.
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def people(table: Table) -> None:
    """Two people in each of eight companies."""
    for number, company in enumerate(COMPANIES):
        Company.objects.create(company_id=company, name=company)
        for place in (1, 2):
            Person.objects.create(company_id=company, person_id=f"p{place}{number}", name=f"{place}{company}")


def everybody() -> Any:
    """The people of all companies, company after company."""
    return Person.objects.filter(company__in=COMPANIES)


#: Each company's people in their order, company after company.
NAMES = [f"{place}{company}" for company in COMPANIES for place in (1, 2)]


def meeting(together: threading.Barrier) -> Any:
    """Within the block each Query waits until so many are under way."""

    def meet(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "Query":
            together.wait(PATIENCE)

    return intercept(meet)


@pytest.mark.parametrize(
    ("read", "before"),
    [
        (lambda: len(everybody()), 0),
        (lambda: everybody().count(), 0),
        (lambda: len(list(everybody().iterator())), 0),
        (lambda: len(everybody().order_by("person_id")), 0),
        (lambda: sum(len(each.people.all()) for each in Company.objects.prefetch_related("people")), 1),
    ],
    ids=["list", "count", "iterator", "merged", "prefetched"],
)
def test_partitions_are_read_at_once(read: Any, before: int) -> None:
    """Eight Queries run in parallel, and each partition is read once."""
    together = threading.Barrier(len(COMPANIES))
    sent: list[str] = []

    def meet(operation: str, params: Mapping[str, Any]) -> None:
        sent.append(operation)
        if len(sent) > before:
            together.wait(PATIENCE)

    with intercept(meet):
        assert read() == 2 * len(COMPANIES)
    assert sent == ["Query"] * (before + len(COMPANIES))


def test_eight_are_under_way_together() -> None:
    """All of them start before one gets its response."""
    with meeting(threading.Barrier(8)), assert_requests(["Query"] * 8):
        assert [person.name for person in everybody()] == NAMES


def test_a_merge_keeps_its_order() -> None:
    """Merged partitions keep their order."""
    with meeting(threading.Barrier(8)), assert_requests(["Query"] * 8):
        found = [person.person_id for person in everybody().order_by("person_id")]
    assert found == sorted(found)


def test_the_setting_reads_one_after_the_other(table: Table) -> None:
    """With ``PARALLEL_READS`` of one, the caller's own thread sends every request, including the state."""
    threads: set[int] = set()
    settings = {"TABLE_NAME": table.name, "ENDPOINT_URL": table.settings.endpoint_url, "PARALLEL_READS": 1}
    with (
        override_settings(DYNAMO_SINGLE={"default": settings}),
        intercept(lambda operation, params: threads.add(threading.get_ident())),
        assert_requests(["UpdateItem", "GetItem", "UpdateItem", *["Query"] * 8]),
    ):
        assert table_settings().parallel_reads == 1
        assert [person.name for person in everybody()] == NAMES
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize(("read", "requests"), [(lambda: everybody()[:3], 2), (lambda: everybody().exists(), 1)])
def test_what_a_slice_does_not_need_is_not_read(read: Any, requests: int) -> None:
    """A small slice reads partitions sequentially, as needed."""
    with assert_requests(["Query"] * requests):
        assert read()


def test_an_error_of_one_partition_is_the_querysets() -> None:
    """The queryset raises the error instead of omitting objects."""
    with refuse("ThrottlingException", operation="Query", times=1), pytest.raises(Throttled):
        list(everybody())
