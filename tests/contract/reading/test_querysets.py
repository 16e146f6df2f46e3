"""Querysets on the real engine: what each method gives, and exactly which requests it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F, Q

from dynamo_single.exceptions import InvalidValue, NoAccessPattern, NotSupported, UnknownField
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Office, Person
from tests.catalog.models import Order, Sample

pytestmark = pytest.mark.usefixtures("people")


@pytest.fixture
def people(table: Any) -> None:
    """Two companies; one with three people, one of them in the trash, and two offices."""
    Company.objects.create(company_id="c1", name="Acme", stock="ACM")
    Company.objects.create(company_id="c2", name="Acme Corp")
    for name in ("Anna", "Mike", "Zoe"):
        Person.objects.create(company_id="c1", person_id=name.lower(), name=name)
    Person.objects.get(person_id="zoe").delete()
    Office.objects.create(company_id="c1", office_id="o1", city="Rome")
    Office.objects.create(company_id="c1", office_id="o2", city="Oslo")
    Office.objects.create(company_id="c2", office_id="o3", city="Turin")


def names(found: Any) -> list[str]:
    """The names of people or companies."""
    return [each.name for each in found]


READS: list[tuple[str, Callable[[], Any], Any, list[str]]] = [
    ("get by pk", lambda: Company.objects.get(pk="c1").name, "Acme", ["GetItem"]),
    ("get by the key's attribute", lambda: Company.objects.get(company_id="c1").name, "Acme", ["GetItem"]),
    ("get by a joined pk", lambda: Person.objects.get(pk="c1~~anna").name, "Anna", ["GetItem"]),
    ("get by both attributes", lambda: Person.objects.get(company_id="c1", person_id="anna").name, "Anna", ["GetItem"]),
    ("get by an index", lambda: Person.objects.get(person_id="mike").company_id, "c1", ["Query"]),
    ("get with a filter", lambda: Company.objects.get(pk="c1", stock="ACM").name, "Acme", ["GetItem"]),
    ("all, in the key's order", lambda: names(Company.objects.all()), ["Acme", "Acme Corp"], ["Query"]),
    ("startswith", lambda: names(Company.objects.filter(name__startswith="Acme C")), ["Acme Corp"], ["Query"]),
    ("a whole part is no prefix", lambda: names(Company.objects.filter(name="Acme")), ["Acme"], ["Query"]),
    ("by a reference", lambda: names(Person.objects.filter(company="c1")), ["Anna", "Mike"], ["Query"]),
    ("live only", lambda: names(Person.objects.all()), ["Anna", "Mike"], ["Query"]),
    ("the trash", lambda: names(Person.deleted_objects.all()), ["Zoe"], ["Query"]),
    ("both", lambda: names(Person.all_objects.filter(company="c1")), ["Anna", "Mike", "Zoe"], ["Query"]),
    ("a filter", lambda: names(Person.objects.filter(company="c1", role="member")), ["Anna", "Mike"], ["Query"]),
    ("exclude", lambda: names(Person.objects.filter(company="c1").exclude(name="Anna")), ["Mike"], ["Query"]),
    (
        "Q",
        lambda: names(Person.objects.filter(Q(name="Anna") | Q(name="Mike"), company="c1")),
        ["Anna", "Mike"],
        ["Query"],
    ),
    ("order_by the key", lambda: names(Person.objects.order_by("name")), ["Anna", "Mike"], ["Query"]),
    ("order_by backwards", lambda: names(Person.objects.order_by("-name")), ["Mike", "Anna"], ["Query"]),
    ("reverse", lambda: names(Person.objects.order_by("name").reverse()), ["Mike", "Anna"], ["Query"]),
    ("reverse without an order", lambda: names(Company.objects.reverse()), ["Acme Corp", "Acme"], ["Query"]),
    (
        "reverse of single items",
        lambda: names(Company.objects.filter(pk__in=["c1", "c2"]).reverse()),
        ["Acme Corp", "Acme"],
        ["BatchGetItem"],
    ),
    ("last of single items", lambda: Company.objects.filter(pk__in=["c2", "c1"]).last().name, "Acme", ["BatchGetItem"]),
    (
        "reverse over partitions",
        lambda: [office.pk for office in Office.objects.filter(company__in=["c1", "c2"]).reverse()],
        ["c2~~o3", "c1~~o2", "c1~~o1"],
        ["Query", "Query"],
    ),
    ("last over partitions", lambda: Office.objects.filter(company__in=["c1", "c2"]).last().pk, "c2~~o3", ["Query"]),
    ("order_by pk", lambda: names(Person.objects.filter(company="c1").order_by("-pk")), ["Mike", "Anna"], ["Query"]),
    ("first", lambda: Company.objects.first().name, "Acme", ["Query"]),
    ("last", lambda: Company.objects.last().name, "Acme Corp", ["Query"]),
    ("first of none", lambda: Company.objects.filter(name="x").first(), None, ["Query"]),
    ("count", lambda: Person.objects.filter(company="c1").count(), 2, ["Query"]),
    ("count of none()", lambda: Person.objects.none().count(), 0, []),
    ("exists", lambda: Person.objects.filter(company="c1").exists(), True, ["Query"]),
    ("exists not", lambda: Person.objects.filter(company="c3").exists(), False, ["Query"]),
    ("contains", lambda: Company.objects.contains(Company(company_id="c1", name="x")), True, ["GetItem"]),
    ("a slice", lambda: names(Person.objects.all()[1:2]), ["Mike"], ["Query"]),
    ("an index", lambda: Person.objects.all()[1].name, "Mike", ["Query"]),
    ("an empty slice", lambda: names(Person.objects.all()[2:2]), [], []),
    ("values_list", lambda: list(Person.objects.values_list("name", flat=True)), ["Anna", "Mike"], ["Query"]),
    ("values", lambda: list(Office.objects.values("city")[:2]), [{"city": "Oslo"}, {"city": "Rome"}], ["Query"]),
    (
        "values of a reference",
        lambda: list(Person.objects.values("company", "company_id", "pk")[:1]),
        [{"company": "c1", "company_id": "c1", "pk": "c1~~anna"}],
        ["Query"],
    ),
    (
        "values of everything",
        lambda: sorted(Office.objects.values()[:1][0])[:3],
        ["address", "city", "company_id"],
        ["Query"],
    ),
    ("no pk", lambda: Company.objects.filter(pk=None).first(), None, []),
    ("any pk", lambda: Company.objects.exclude(pk=None).count(), 2, ["Query"]),
    ("a company or none", lambda: Person.objects.filter(person_id="anna", company=None).count(), 0, ["Query"]),
    ("pk in", lambda: names(Company.objects.filter(pk__in=["c2", "c1"])), ["Acme Corp", "Acme"], ["BatchGetItem"]),
    (
        "in_bulk",
        lambda: sorted(Person.objects.in_bulk(["c1~~anna", "c1~~nobody", "c1~~mike"])),
        ["c1~~anna", "c1~~mike"],
        ["BatchGetItem"],
    ),
    (
        "in on a partition",
        lambda: names(Person.objects.filter(company__in=["c1", "c2"])),
        ["Anna", "Mike"],
        ["Query", "Query"],
    ),
    ("in of nothing", lambda: names(Person.objects.filter(company__in=[])), [], []),
    ("isnull", lambda: names(Company.objects.filter(stock__isnull=True)), ["Acme Corp"], ["Query"]),
    ("is None", lambda: names(Company.objects.filter(stock=None)), ["Acme Corp"], ["Query"]),
    ("a foreign pk", lambda: Person.objects.filter(pk="nobody").count(), 0, []),
    ("iterator", lambda: names(Person.objects.iterator(chunk_size=1)), ["Anna", "Mike"], ["Query"]),
    (
        "select_related",
        lambda: [p.company.name for p in Person.objects.select_related("company")],
        ["Acme", "Acme"],
        ["Query", "GetItem"],
    ),
    ("children", lambda: names(Company(company_id="c1", name="x").people.all()), ["Anna", "Mike"], ["Query"]),
    (
        "a scan that was allowed",
        lambda: names(Company.objects.allow_scan().filter(pk__gt="c1")),
        ["Acme Corp"],
        ["Query"],
    ),
    ("earliest", lambda: Person.objects.earliest("name").name, "Anna", ["Query"]),
    ("latest", lambda: Person.objects.latest("name").name, "Mike", ["Query"]),
    (
        "using_index",
        lambda: names(Person.objects.using_index("primary").filter(company="c1", name="Mike")),
        ["Mike"],
        ["Query"],
    ),
]


@pytest.mark.parametrize(("read", "expected", "operations"), [row[1:] for row in READS], ids=[row[0] for row in READS])
def test_each_read_gives_this_with_these_requests(
    read: Callable[[], Any], expected: Any, operations: list[str]
) -> None:
    """The result is right, and the requests are those and no other."""
    with assert_requests(operations):
        found = read()
    assert found == expected


def test_a_read_is_consistent_when_asked() -> None:
    """The request contains ``consistent()``."""
    with assert_requests(["GetItem"]) as sent:
        Company.objects.consistent().get(pk="c1")
    assert sent[0].params["ConsistentRead"] is True


def test_a_consistent_read_of_an_index_is_refused() -> None:
    """Indexes are eventually consistent, so the error suggests the table."""
    with assert_requests(0), pytest.raises(NoAccessPattern, match="consistent"):
        list(Company.objects.consistent().all())


def test_nothing_is_sent_before_the_queryset_is_evaluated() -> None:
    """Building querysets costs no request."""
    with assert_requests(0):
        Company.objects.filter(name__startswith="A").exclude(stock="x").order_by("name")[:10].explain()


def test_a_queryset_reads_once() -> None:
    """The second iteration uses the cache of the queryset."""
    found = Company.objects.all()
    with assert_requests(["Query"]):
        assert names(found) == names(found)
        assert (len(found), bool(found), found.count(), found.exists()) == (2, True, 2, True)


def test_pages_are_read_lazily(table: Any) -> None:
    """The iteration requests the next page only after the previous one is used up."""
    for number in range(5):
        Sample.objects.create(
            sample_id=f"s{number}",
            text="x" * 300_000,
        )
    with assert_requests(["Query"]):
        found = iter(Sample.objects.iterator())
        assert [next(found).pk, next(found).pk] == ["s0", "s1"]
    with assert_requests(["Query", "Query"]):
        assert Sample.objects.count() == 5


def test_first_reads_one_item() -> None:
    """Without a filter, ``Limit`` is exact, so the query reads one item."""
    with assert_requests(["Query"]) as sent:
        Company.objects.first()
    assert sent[0].params["Limit"] == 1


def test_get_stops_at_the_second_match() -> None:
    """Several matches raise an error, and at most two items are requested."""
    with assert_requests(["Query"]) as sent, pytest.raises(Company.MultipleObjectsReturned):
        Company.objects.get(name__startswith="Acme")
    assert sent[0].params["Limit"] == 2


def test_first_is_right_when_a_filter_drops_items(table: Any) -> None:
    """``Limit`` counts items read, so ``first()`` continues until an item passes the filter."""
    for number in range(40):
        Person.objects.create(company_id="c2", person_id=f"p{number:02}", name="x", role="member")
    Person.objects.create(company_id="c2", person_id="p99", name="y", role="founder")
    with assert_requests(["Query"] * 4):
        found = Person.objects.filter(company="c2", role="founder").first()
    assert found is not None
    assert found.name == "y"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda: Person.objects.filter(company="c1").order_by("role"), "its order is person_id, not role"),
        (lambda: Company.objects.filter(company_id__startswith="c").using_index("primary"), "company_id"),
        (lambda: Company.objects.using_index("by_nme"), "by_nme"),
        (lambda: Order.objects.all(), "the query does not set customer"),
        (lambda: Order.objects.filter(placed_at__isnull=True), "placed_at"),
    ],
)
def test_a_query_without_access_pattern_is_refused_before_it_is_sent(query: Any, message: str) -> None:
    """No key supports the query: an error before any request names the missing part."""
    with assert_requests(0), pytest.raises(NoAccessPattern) as raised:
        list(query())
    assert message in str(raised.value)


def test_the_refusal_names_every_key_and_the_ways_out() -> None:
    """The message contains the query, the missing part of each key, and three alternatives."""
    with pytest.raises(NoAccessPattern) as raised:
        Order.objects.filter(status="open").first()
    assert str(raised.value) == (
        "catalog.Order: no key supports filter(status='open').\n"
        "  primary 'CUSTOMER#{customer}' / 'ORDER#{number}': the query does not set customer.\n"
        "  by_time (gs1) 'ORDER' / '{placed_at}#{customer}#{number}': items without placed_at are not in it, "
        "and the query does not exclude them; placed_at__isnull=False does.\n"
        "  by_coupon (gs2) 'COUPON#{coupon}' / '{customer}#{number}': the query does not set coupon.\n"
        "To fix this, do one of the following:\n"
        "  - filter by one of the keys above\n"
        '  - add a key to Order.Keys: by_status = models.IndexKey("gs3", "ORDER", "{status}#{customer}#{number}")\n'
        "    To add stored items to it, run manage.py makemigrations and migrate in an app "
        "with migrations, or manage.py dynamo_rebuild catalog.Order in another app\n"
        "  - call .allow_scan() to read, and pay for, every item of the table"
    )


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (lambda: Company.objects.filter(nme="x"), UnknownField, "Cannot resolve keyword 'nme'"),
        (lambda: Company.objects.complex_filter(Q(nme="x")), UnknownField, "Cannot resolve keyword 'nme'"),
        (lambda: Company.objects.complex_filter({"nme": "x"}), UnknownField, "Cannot resolve keyword 'nme'"),
        (lambda: Company.objects.filter(name__nope="x"), UnknownField, "nope"),
        (lambda: Company.objects.order_by("nme"), UnknownField, "Cannot resolve keyword 'nme'"),
        (lambda: Company.objects.values("nme"), UnknownField, "no attribute 'nme' for values()"),
        (lambda: list(Company.objects.filter(name__iexact="x")), NotSupported, "{name:canonical} into a key"),
        (lambda: list(Company.objects.filter(name__icontains="x")), NotSupported, "folded copy"),
        (lambda: list(Company.objects.filter(name__regex="x")), NotSupported, "filter in Python"),
        (lambda: list(Person.objects.filter(company__name="x")), NotSupported, "DynamoDB has no joins"),
        (lambda: list(Person.objects.order_by("?")), NotSupported, "allow_in_memory"),
        (lambda: list(Person.objects.filter(Q(name="x") ^ Q(name="y"))), NotSupported, "XOR"),
        (lambda: list(Company.objects.filter(name=F("created_at"))), NotSupported, "Their stored types differ"),
        (
            lambda: list(Company.objects.filter(created_at__hour=2)),
            NotSupported,
            "keep the hour in a separate attribute",
        ),
        (lambda: Person.objects.select_related("text"), UnknownField, "has no reference 'text'. It has company"),
        (lambda: Person.objects.select_related("company__x"), UnknownField, "directory.Company has no reference 'x'"),
        (lambda: Company.objects.select_related("people"), UnknownField, "prefetch_related('people') fetches several"),
        (lambda: Company.objects.select_related("person_set"), UnknownField, "prefetch_related('person_set') fetches"),
        (lambda: Company.objects.using("nope"), NotSupported, "directory.Company.Meta.table"),
        (lambda: Order.objects.allow_scan().filter(status="x").last(), NotSupported, "a scan has no order"),
        (lambda: Order.objects.filter(total__in=5), InvalidValue, "total__in must be a list of values, not 5"),
        (lambda: Order.objects.filter(~Q(total__range=5)), InvalidValue, "total__range must be two bounds, not 5"),
        (lambda: list(Order.objects.filter(total__range=[1])), InvalidValue, "takes two bounds, the lower one first"),
        (lambda: list(Order.objects.filter(total__range=[1, 2, 3])), InvalidValue, "total__range takes two bounds"),
        (lambda: Order.objects.filter(number__gte=float("nan")), InvalidValue, "number must be a whole number"),
        (lambda: Order.objects.filter(number__lt=float("inf")), InvalidValue, "number must be a whole number"),
    ],
)
def test_what_cannot_be_answered_exactly_is_refused(query: Any, error: type[Exception], message: str) -> None:
    """Unknown names and inexact lookups raise a clear error before any request."""
    with assert_requests(0), pytest.raises(error) as raised:
        query()
    assert message in str(raised.value)


def test_an_unknown_name_is_answered_with_the_attributes_that_there_are() -> None:
    """The choices do not include reverse relations, because filters cannot use them."""
    with pytest.raises(UnknownField) as raised:
        Company.objects.filter(nme="x")
    assert str(raised.value) == (
        "directory.Company: Cannot resolve keyword 'nme' into field. Choices are: company_id, created_at, deleted_at, "
        "deleted_with, founded, name, public, stock, updated_at."
    )


def test_an_order_that_no_key_has_is_better_left_out() -> None:
    """If a key supports everything but the order, the alternatives are no order or one in memory, without a scan."""
    with pytest.raises(NoAccessPattern) as raised:
        Person.objects.filter(company="c1").order_by("role").first()
    said = str(raised.value)
    assert "remove the order (.order_by() without names), so that primary supports it" in said
    assert (
        "call .allow_in_memory(limit=1000): primary supports it, and the app sorts up to 1000 matches in memory" in said
    )
    assert "allow_scan" not in said


def test_async_methods_answer_like_their_twins() -> None:
    """The ``a`` methods give the same without blocking the event loop."""

    async def ask() -> tuple[Any, ...]:
        company = await Company.objects.aget(pk="c1")
        listed = [person.name async for person in Person.objects.all()]
        first = await Person.objects.afirst()
        assert first is not None
        await first.adelete()
        return company.name, listed, await Person.objects.acount(), await Person.objects.aexists()

    assert asyncio.run(ask()) == ("Acme", ["Anna", "Mike"], 1, True)


def test_querysets_are_combined_with_or_and_and() -> None:
    """``|`` and ``&`` combine conditions."""
    of_company = Person.objects.filter(company="c1")
    both = of_company.filter(name="Anna") | of_company.filter(name="Mike")
    assert sorted(names(both.using_index("primary"))) == ["Anna", "Mike"]
    assert names(both) == ["Anna", "Mike"]
    assert names(of_company & Person.objects.filter(name="Mike")) == ["Mike"]


def test_querysets_of_different_kinds_are_not_combined() -> None:
    """Live and deleted objects cannot be in one queryset."""
    with pytest.raises(NotSupported, match="different kinds"):
        Person.objects.all() | Person.deleted_objects.all()


def test_contains_refuses_rows() -> None:
    """Django raises the same error."""
    with assert_requests([]), pytest.raises(TypeError, match=r"after \.values"):
        Company.objects.values("name").contains(Company(company_id="c1", name="x"))


def test_arguments_of_q_are_no_conditions() -> None:
    """A name from an address must not negate the others, in a filter over relations either."""
    with assert_requests([]), pytest.raises(TypeError, match="'_negated'"):
        Person.objects.filter(company__name="A", _negated=True)


def test_update_refuses_a_reference_to_an_object_without_a_key() -> None:
    """Otherwise, the update would clear the reference."""
    with assert_requests([]), pytest.raises(InvalidValue, match="has no pk"):
        Sample.objects.filter(sample_id="s").update(parent=Sample(sample_id=None))
