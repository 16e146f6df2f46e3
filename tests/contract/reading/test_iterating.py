"""Iteration over many objects: prefetched objects, and memory."""

from __future__ import annotations

import tracemalloc
from itertools import islice

from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Order


def test_references_are_read_in_batches_too(table: Table) -> None:
    """``select_related`` and ``prefetch_related`` read each referenced object once, a hundred per request."""
    numbers = range(101)
    companies = [Company(company_id=f"c{number}", name=f"Company {number}") for number in numbers]
    Company.objects.bulk_create(companies, update_conflicts=True)
    people = [
        Person(company_id=f"c{number}", person_id=person, name=f"Person {number:03d}")
        for number in numbers
        for person in "pq"
    ]
    Person.objects.bulk_create(people, update_conflicts=True)
    with assert_requests(["Query", "BatchGetItem", "BatchGetItem"]):
        people = list(Person.objects.select_related("company"))
        assert [person.company.name for person in islice(people, 3)] == ["Company 0", "Company 0", "Company 1"]
    with assert_requests(["Query", "BatchGetItem", "BatchGetItem"]):
        people = list(Person.objects.prefetch_related("company"))
        assert len({id(person.company) for person in people}) == 101


def test_iterating_keeps_pages_and_not_results(table: Table) -> None:
    """Iteration needs memory for some pages, whatever the number of items: a third of the read data here."""
    size, number = 300_000, 60
    for each in range(number):
        Order.objects.create(customer="c", number=each, status="x" * size)
    list(Order.objects.filter(customer="nobody").iterator())
    for found in (
        Order.objects.filter(customer="c").iterator(),
        Order.objects.filter(customer="c").iterator(chunk_size=1),
        Order.objects.filter(customer="c").values_list("status", flat=True).iterator(),
    ):
        tracemalloc.start()
        try:
            assert sum(1 for _ in found) == number
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < size * number / 3
