"""Conditions that exceed limits of DynamoDB or Python raise this app's error before any request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Count, F, Q

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.schema.attributes import UnicodeAttribute
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Product

SURROGATE = "a\ud800b"


def negated(levels: int) -> Q:
    """A condition in so many nested negations."""
    condition = Q(name="a")
    for _ in range(levels):
        condition = ~(condition & Q(stock="x"))
    return condition


def alternating(levels: int) -> Q:
    """A condition in so many alternatives, each inside the next."""
    condition = Q(name="a")
    for _ in range(levels):
        condition = (condition | Q(name="b")) & Q(stock="x")
    return condition


def in_stack(frames: int, work: Callable[[], Any]) -> Any:
    """Do something below so many frames of a server."""
    return in_stack(frames - 1, work) if frames else work()


@pytest.mark.parametrize("nested", [negated, alternating])
@pytest.mark.parametrize("levels", [100, 400, 5000])
@pytest.mark.parametrize(
    "ask",
    [
        lambda condition: list(Company.objects.filter(condition)),
        lambda condition: Company.objects.exclude(condition).count(),
        lambda condition: Company.objects.get(condition),
        lambda condition: Company.objects.filter(condition).explain(),
        lambda condition: Company(company_id="c1", name="Acme").save(condition=condition),
        lambda condition: Company.objects.aggregate(some=Count("pk", filter=condition)),
    ],
    ids=["filter", "exclude", "get", "explain", "save", "aggregate"],
)
def test_deeply_nested_conditions_are_refused(
    table: Table, nested: Callable[[int], Q], levels: int, ask: Callable[[Q], Any]
) -> None:
    """At any depth, the error is raised before any request and names an alternative."""
    condition = nested(levels)
    with assert_requests(0), pytest.raises(NotSupported, match="more than 50 levels deep"):
        ask(condition)


@pytest.mark.parametrize("nested", [lambda: negated(24), lambda: alternating(24)])
def test_what_is_allowed_needs_no_deep_stack(table: Table, nested: Callable[[], Q]) -> None:
    """Conditions with the maximum depth work below four hundred stack frames of a server."""
    Company.objects.create(company_id="c1", name="a", stock="x")
    found = Company.objects.filter(nested())
    assert in_stack(400, lambda: len(found)) == len(found)


def test_querysets_that_are_combined_again_and_again_are_refused(table: Table) -> None:
    """Alternating ``|`` and ``filter()`` have the same limit as a ``Q``."""
    found = Company.objects.filter(name="a")
    with assert_requests(0), pytest.raises(NotSupported, match="more than 50 levels deep"):
        for number in range(200):
            found = (found | Company.objects.filter(name=f"n{number}")).filter(stock="x")


@pytest.mark.parametrize(
    "step", [lambda found, name: found.exclude(name=name), lambda found, name: found.filter(~Q(name=name))]
)
def test_more_conditions_than_an_expression_takes_are_refused(table: Table, step: Callable[[Any, str], Any]) -> None:
    """Condition 301 raises an error that names ``__in``."""
    found: Any = Company.objects.all()
    for number in range(300):
        found = step(found, f"n{number}")
    with assert_requests(0), pytest.raises(NotSupported, match=r"exclude\(name__in="):
        step(found, "one more")


def test_many_values_of_one_attribute_are_no_deep_condition(table: Table) -> None:
    """Alternatives joined by ``|`` are flat, and become one key list."""
    Company.objects.create(company_id="c7", name="Acme")
    condition = Q(pk="c0")
    for number in range(1, 1000):
        condition |= Q(pk=f"c{number}")
    with assert_requests(["BatchGetItem"] * 10):
        assert [company.pk for company in Company.objects.filter(condition)] == ["c7"]


def test_many_composite_keys_are_asked_for_by_hundreds(table: Table) -> None:
    """A hundred keys take one request, which contains each key once."""
    Person.objects.create(company_id="c1", person_id="p1", name="Anna")
    keys = [f"c1~~p{number}" for number in range(1000)]
    with assert_requests(["BatchGetItem"] * 10):
        assert [person.name for person in Person.objects.filter(pk__in=keys)] == ["Anna"]


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda keys: list(Person.objects.filter(pk__in=keys)), "pk__in"),
        (lambda keys: Person.objects.filter(pk__in=iter(keys)).count(), "pk__in"),
        (lambda keys: Person.objects.in_bulk(keys), "pk__in"),
        (lambda keys: Person.objects.exclude(pk__in=keys).exists(), "pk__in"),
        (lambda keys: list(Company.objects.filter(pk__in=keys)), "company_id__in"),
        (lambda keys: list(Person.objects.filter(company__in=keys)), "company_id__in"),
        (lambda keys: list(Person.objects.filter(person_id__in=keys).allow_scan()), "person_id__in"),
        (lambda keys: Person.objects.filter(pk__in=keys).explain(), "pk__in"),
        (lambda keys: Person.objects.filter(pk__in=keys).update(name="x"), "pk__in"),
    ],
)
def test_more_values_than_one_query_is_spread_over_are_refused(
    table: Table, ask: Callable[[list[str]], Any], named: str
) -> None:
    """Ten thousand keys take a hundred requests; one more raises an error that suggests several queries."""
    keys = [f"c1~~p{number}" for number in range(10_001)]
    refused = rf"{named} has 10001 values; one query accepts 10000\. .*__in=values\[start : start \+ 10000\]"
    with assert_requests(0), pytest.raises(NotSupported, match=refused):
        ask(keys)


def test_ten_thousand_composite_keys_are_asked_for(table: Table) -> None:
    """The maximum number of keys works."""
    Person.objects.create(company_id="c1", person_id="p9999", name="Anna")
    keys = [f"c1~~p{number}" for number in range(10_000)]
    with assert_requests(["BatchGetItem"] * 100):
        assert list(Person.objects.in_bulk(keys)) == ["c1~~p9999"]


def test_lists_that_are_joined_are_bounded_together(table: Table) -> None:
    """Two lists of keys that ``|`` joins are one list."""
    first, second = ([f"c{which}~~p{number}" for number in range(6000)] for which in (1, 2))
    with assert_requests(0), pytest.raises(NotSupported, match="Send several queries with fewer values each"):
        list(Person.objects.filter(Q(pk__in=first) | Q(pk__in=second)))


def test_a_list_of_keys_is_written_out_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning looks at each value of a composite key a set number of times, however many keys there are."""
    seen: list[str] = []
    real = UnicodeAttribute.clean
    monkeypatch.setattr(UnicodeAttribute, "clean", lambda self, value: (seen.append(value), real(self, value))[1])
    for count in (100, 1000):
        seen.clear()
        assert "BatchGetItem" in Person.objects.filter(pk__in=[f"c1~~p{n}" for n in range(count)]).explain()
        assert len(seen) <= 6 * count


def test_a_path_of_many_numbers_is_refused(table: Table) -> None:
    """Each number may be a key or a position: twenty of them would be a million places."""
    with assert_requests(0), pytest.raises(NotSupported, match="can mean more than 64 paths"):
        list(Product.objects.filter(**{"data__a" + "__0" * 20: 1}).allow_scan())


@pytest.mark.parametrize(
    "ask",
    [
        lambda: list(Product.objects.filter(**{f"data__{SURROGATE}": 1}).allow_scan()),
        lambda: list(Product.objects.filter(**{f"data__x__{SURROGATE}__gt": 1}).allow_scan()),
        lambda: list(Product.objects.exclude(**{f"data__{SURROGATE}__isnull": True}).allow_scan()),
        lambda: list(Product.objects.filter(data__has_key=SURROGATE).allow_scan()),
        lambda: list(Product.objects.filter(data__has_keys=["a", SURROGATE]).allow_scan()),
        lambda: list(Product.objects.filter(data__has_any_keys=["a", SURROGATE]).allow_scan()),
        lambda: list(Product.objects.filter(pk="p", **{f"data__{SURROGATE}": 1})),
        lambda: list(Product.objects.filter(data={SURROGATE: 1}).allow_scan()),
        lambda: list(Product.objects.filter(data__x={"y": SURROGATE}).allow_scan()),
        lambda: Product.objects.filter(pk="p").update(**{f"data__{SURROGATE}": 1}),
        lambda: Product.objects.filter(pk="p").update(data__x=F(f"data__{SURROGATE}") + 1),
        lambda: Product.objects.allow_scan().update(**{f"data__{SURROGATE}": 1}),
        lambda: Product(product_id="p", data={SURROGATE: 1}).save(),
        lambda: Product(product_id="p", data={"x": [SURROGATE]}).save(),
        lambda: Product(product_id=SURROGATE, data={}).save(),
        lambda: Product.objects.get(pk=SURROGATE),
        lambda: Product(product_id="p", data={}).save(condition=Q(**{f"data__{SURROGATE}": 1})),
    ],
)
def test_a_text_without_utf8_form_is_refused(table: Table, ask: Callable[[], Any]) -> None:
    """In a value, a key, and any place of a path: our error names it, and the engine never sees it."""
    with assert_requests(0), pytest.raises(InvalidValue, match="lone surrogate"):
        ask()
