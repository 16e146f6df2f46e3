"""Rows in memory give the same results as DynamoDB, with one read within their limit."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Count, Max, Q
from msgspec.structs import replace

from dynamo_single.exceptions import NoAccessPattern, NotSupported, TooManyMatches
from dynamo_single.orm.results.cached_lists import CachedLists
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Firm

pytestmark = pytest.mark.usefixtures("table")


def holding(queryset: Any, limit: int = 100) -> Any:
    """Return a queryset that allows rows in memory."""
    return queryset._asking(replace(queryset._asked, cached_lists=CachedLists(limit)))


@pytest.fixture
def companies(table: Any) -> None:
    """Five companies, one of them in the trash."""
    for number, name in enumerate(["Zeta", "acme", "Ärger", "Bolt", "gone"]):
        Company.objects.create(
            company_id=name, name=name, stock=None if number == 1 else f"S{number}", public=number < 2
        )
    Company.objects.get(pk="gone").delete()


@pytest.mark.parametrize(
    "condition",
    [
        Q(public=True),
        ~Q(public=True),
        Q(stock="S2"),
        Q(stock__isnull=True),
        Q(stock__in=["S0", "S3"]),
        Q(stock__gt="S0") & ~Q(name="Bolt"),
        Q(stock="S2") | Q(name__startswith="a"),
        Q(name__range=("B", "a")),
        Q(name__contains="e"),
        Q(created_at__year=1970),
        Q(pk__in=["acme", "gone", "Bolt"]),
        Q(pk="acme", stock="S1"),
        Q(pk__in=[]),
    ],
)
@pytest.mark.parametrize("visibility", ["live", "deleted"])
@pytest.mark.usefixtures("companies")
def test_a_condition_holds_of_the_same_rows(condition: Q, visibility: Any) -> None:
    """The comparison is the same as in DynamoDB."""
    asked = Company.objects.all().with_visibility(visibility).filter(condition)
    assert {each.pk for each in holding(asked)} == {each.pk for each in asked}
    assert holding(asked).count() == len(asked)
    assert holding(asked).exists() == bool(asked)


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ({"name__icontains": "ÄR"}, ["Ärger"]),
        ({"name__icontains": "E"}, ["Zeta", "acme", "Ärger"]),
        ({"name__istartswith": "b"}, ["Bolt"]),
        ({"name__iexact": "ACME"}, ["acme"]),
        ({"name__endswith": "A"}, []),
        ({"name__iendswith": "A"}, ["Zeta"]),
        ({"stock__icontains": "s"}, ["Bolt", "Zeta", "Ärger"]),
    ],
)
@pytest.mark.usefixtures("companies")
def test_texts_are_compared_in_any_case(condition: dict[str, str], names: list[str]) -> None:
    """Python computes lookups without a DynamoDB operator; without rows in memory, they raise an error."""
    with assert_requests(["Query"]):
        assert sorted(each.name for each in holding(Company.objects.filter(**condition))) == sorted(names)
    with pytest.raises(NotSupported):
        list(Company.objects.filter(**condition))


@pytest.mark.usefixtures("companies")
def test_a_copy_without_case_is_asked_as_well() -> None:
    """The copy also finds a string, and a key that contains the copy is used."""
    person = Person.objects.create(company=Company.objects.get(pk="acme"), name="Mike", email="Mike@Example.com")
    assert [each.pk for each in holding(Person.objects.filter(email__icontains="EXAMPLE"))] == [person.pk]


@pytest.mark.usefixtures("companies")
def test_many_questions_are_one_reading() -> None:
    """A single read provides rows, slices, distinct values, facets, ends and periods."""
    asked = holding(Company.objects.all())
    with assert_requests(["Query"]):
        assert [each.name for each in asked.order_by("stock", "-name")] == ["acme", "Zeta", "Ärger", "Bolt"]
        assert [each.name for each in asked.order_by("-stock")[1:3]] == ["Ärger", "Zeta"]
        assert list(asked.order_by("stock").values_list("stock", flat=True).distinct()) == [None, "S0", "S2", "S3"]
        found = asked.aggregate(yes=Count("pk", filter=Q(public=True)), last=Max("stock"))
        assert found == {"yes": 2, "last": "S3"}
        assert len(asked.datetimes("created_at", "year")) == 1
        assert asked.filter(public=True).count() == 2


@pytest.mark.usefixtures("companies")
def test_a_question_that_keys_answer_exactly_is_asked_of_them() -> None:
    """Such a query does not load all rows; once they are loaded, it does not send requests."""
    asked = holding(Company.objects.all())
    with assert_requests(["GetItem", "Query"]):
        assert asked.get(pk="acme").name == "acme"
        assert [each.name for each in asked.filter(name__startswith="Z")] == ["Zeta"]
    assert not asked._asked.cached_lists.is_used


@pytest.mark.usefixtures("companies")
def test_what_a_key_narrows_is_all_that_is_held() -> None:
    """A query about one company reads only its people."""
    for company_id in ("acme", "Bolt"):
        for name in ("Mike", "Nora"):
            Person.objects.create(company=Company.objects.get(pk=company_id), name=name)
    asked = holding(Person.objects.filter(company="acme", name__icontains="O"))
    assert [each.name for each in asked] == ["Nora"]
    assert asked._asked.cached_lists.rows == 2


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.usefixtures("companies")
def test_one_row_too_many_is_no_result(limit: int) -> None:
    """At most one row past the limit is read, only once."""
    asked = holding(Company.objects.all(), limit)
    with assert_requests(["Query"]) as sent:
        for _ in range(2):
            with pytest.raises(TooManyMatches):
                list(asked.order_by("stock"))
    assert sent[0].params["Limit"] == limit + 1
    assert asked._asked.cached_lists.is_exceeded
    with pytest.raises(TooManyMatches), assert_requests(["Query"]):
        asked.count()


def test_what_no_key_lists_is_not_held() -> None:
    """The app never scans the table for it."""
    with assert_requests([]), pytest.raises(NoAccessPattern):
        list(holding(Firm.objects.filter(name="x")))


@pytest.mark.usefixtures("companies")
def test_pages_by_cursor_are_of_keys() -> None:
    """Rows in memory have no cursors."""
    with pytest.raises(NotSupported):
        holding(Company.objects.filter(public=True)).page(2)


@pytest.mark.parametrize(
    ("order", "people"),
    [
        (["company__name"], ["2", "1", "0"]),
        (["-company__name"], ["0", "1", "2"]),
        (["company__public", "-company__name"], ["2", "0", "1"]),
        (["company"], ["2", "1", "0"]),
        (["-company", "name"], ["0", "1", "2"]),
    ],
)
@pytest.mark.usefixtures("companies")
def test_an_order_by_what_a_reference_leads_to(
    order: list[str], people: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch reads the objects; without a name, their default order applies."""
    monkeypatch.setattr(Company._meta, "ordering", ("name",))
    for number, company_id in enumerate(["acme", "Zeta", "Bolt"]):
        Person.objects.create(company=Company.objects.get(pk=company_id), name=str(number))
    with assert_requests(["Query", "BatchGetItem"]):
        found = [each.name for each in holding(Person.objects.all()).order_by(*order)]
    assert found == people
    assert [each.name for each in Person.objects.order_by(*order).allow_in_memory()] == people
