"""Creations on the real engine: their condition, and the state after invalid input."""

from __future__ import annotations

from typing import Any

import django
import pytest
from django.db import IntegrityError

from dynamo_single import models
from dynamo_single.exceptions import AlreadyExists, EmptyKeyPart, InvalidValue, ItemTooLarge, OutdatedKey
from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Firm, Order, Product, Sample
from tests.contract.tables import stored
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


def test_create_is_one_conditional_put(sent: list[SentRequest]) -> None:
    """A new object is put on condition that its key is free."""
    Company.objects.create(company_id="c1", name="Acme")
    assert [request.operation for request in sent] == ["PutItem"]
    assert sent[0].params["ConditionExpression"] == "attribute_not_exists(#a0)"


def test_create_never_overwrites(table: Table) -> None:
    """A second object with the same key raises an error, and the first one is kept."""
    Company.objects.create(company_id="c1", name="Acme")
    with pytest.raises(AlreadyExists) as raised:
        Company.objects.create(company_id="c1", name="Other")
    assert str(raised.value) == (
        "directory.Company with pk 'c1' already exists. Nothing was written. Load it to change it."
    )
    assert stored(table)["COMPANY#c1"]["name"] == {"S": "Acme"}


def test_saving_a_new_object_does_not_overwrite_either() -> None:
    """``save()`` creates an object that was not loaded, even with a given key."""
    Firm(firm_id="f", name="n", stock="s").save()
    with pytest.raises(AlreadyExists):
        Firm(firm_id="f", name="other", stock="s").save()


def test_an_object_in_the_trash_keeps_its_key() -> None:
    """The error says that the object is in the trash."""
    Company.objects.create(company_id="c1", name="Acme").delete()
    with pytest.raises(AlreadyExists, match=r"It is in the trash: restore it or delete it permanently."):
        Company.objects.create(company_id="c1", name="Acme")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Company(name=5), InvalidValue, "directory.Company: name must be a string (str), not int 5."),
        (
            lambda: Company(name="x", public="maybe"),
            InvalidValue,
            "directory.Company: public must be True or False, not str 'maybe'.",
        ),
        (
            lambda: Company(name="x", founded="soon"),
            InvalidValue,
            "directory.Company: founded must be a date, not str 'soon'.",
        ),
        (
            lambda: Company(name=None),
            InvalidValue,
            "directory.Company: name is missing: set it to a string (str), or declare it with null=True.",
        ),
        (
            lambda: Order(customer="c", number=1.5),
            InvalidValue,
            "catalog.Order: number must be a whole number, not float 1.5.",
        ),
        (
            lambda: Order(customer="c", number=True),
            InvalidValue,
            "catalog.Order: number must be a whole number, not bool True.",
        ),
        (lambda: Sample(number=float("nan")), InvalidValue, "catalog.Sample: number must be a number, not float nan."),
        (lambda: Sample(data=[1]), InvalidValue, "catalog.Sample: data must be a dict, not list [1]."),
        (lambda: Sample(words={1}), InvalidValue, "catalog.Sample: words must be a set of strings, not set {1}."),
        (lambda: Sample(blob="text"), InvalidValue, "catalog.Sample: blob must be bytes, not str 'text'."),
        (lambda: Sample(token="x"), InvalidValue, "catalog.Sample: token must be a UUID, not str 'x'."),
        (
            lambda: Company(name=""),
            EmptyKeyPart,
            "directory.Company: name is empty, and the key by_name on gs1 needs it. Give name a value, or declare it "
            "blank=True to leave objects without one out of that index, or write {name:first} in the key to keep them "
            "in it.",
        ),
        (
            lambda: Firm(firm_id="", name="n", stock="s"),
            EmptyKeyPart,
            "catalog.Firm: firm_id is empty, and the key '{firm_id}' needs it. Give firm_id a value first.",
        ),
        (lambda: Person(name="Mike"), InvalidValue, "directory.Person: company_id is missing"),
        (
            lambda: Company(name="x", stock="\ud800"),
            InvalidValue,
            "directory.Company: stock: '\\ud800' has a lone surrogate",
        ),
        (lambda: Company(name="x", stock="s" * 409_600), ItemTooLarge, "DynamoDB stores at most 409600."),
        (lambda: Company(name="n" * 1_100), InvalidValue, "DynamoDB takes 1024 there. Shorten name, company_id."),
    ],
)
def test_bad_input_is_one_clear_error_and_nothing_is_sent(
    table: Table, make: Any, error: type[Exception], message: str
) -> None:
    """A wrong value raises an error with the attribute's name before any request is sent."""
    with assert_requests(0), pytest.raises(error) as raised:
        make().save()
    assert message in str(raised.value)
    assert stored(table) == {}


@pytest.mark.parametrize("values", [{"name": 5}, {"stock": "s" * 409_600}, {"name": ""}])
def test_a_bad_update_leaves_the_item_as_it_was(table: Table, values: dict[str, Any]) -> None:
    """A refused change is not half-written."""
    company = Company.objects.create(company_id="c1", name="Acme")
    before = stored(table)
    for name, value in values.items():
        setattr(company, name, value)
    with assert_requests(0), pytest.raises((InvalidValue, ItemTooLarge)):
        company.save()
    assert stored(table) == before


@pytest.mark.parametrize(
    "make",
    [
        lambda length: Product(product_id="x" * length),
        lambda length: Product(product_id="\u00e9" * (length // 2) + "x" * (length % 2)),
    ],
    ids=["one byte", "two bytes"],
)
def test_a_partition_key_has_at_most_2048_bytes(table: Table, make: Any) -> None:
    """The longest key that DynamoDB accepts is stored, and one more byte raises an error before any request."""
    make(2048).save()
    with assert_requests(0), pytest.raises(InvalidValue, match=r"DynamoDB takes 2048 there. Shorten product_id."):
        make(2049).save()
    assert len(stored(table)) == 1


def test_a_unique_value_has_at_most_2048_bytes_with_its_claim(table: Table) -> None:
    """The claim's key is also a partition key, and a value that does not fit raises an error."""
    with forgotten():
        code = models.UnicodeAttribute(unique=True)
        model = declare("Coded", ("CODED#{coded_id}", "#X"), coded_id=models.IdAttribute(), code=code)
        room = 2048 - len("UNIQUE#Coded#code#")
        model.objects.create(code="x" * room)
        with assert_requests(0), pytest.raises(InvalidValue, match=r"DynamoDB takes 2048 there"):
            model.objects.create(code="x" * (room + 1))


@pytest.mark.skipif(django.VERSION >= (6,), reason="Django 6 takes no positional arguments")
@pytest.mark.filterwarnings("ignore:Passing positional")
def test_save_takes_its_options_by_position_once(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An override that passes its arguments on is called once, and ``force_insert`` creates."""
    company = Company.objects.create(company_id="c1", name="Acme")
    calls = []

    def save(self: Any, *args: Any, **options: Any) -> None:
        calls.append(args)
        super(Company, self).save(*args, **options)

    monkeypatch.setattr(Company, "save", save)
    with pytest.raises(AlreadyExists):
        company.save(True, False)
    assert calls == [(True, False)]


def test_creating_without_a_required_value_is_an_integrity_error() -> None:
    """The error is caught like NOT NULL in SQL, and is raised before any request is sent."""
    with assert_requests(0), pytest.raises(IntegrityError, match="number is missing"):
        Order.objects.create(customer="a")


def test_updating_a_required_value_away_is_an_integrity_error() -> None:
    """A queryset's ``update()`` raises the same error before any read."""
    with assert_requests(0), pytest.raises(IntegrityError, match="name is missing"):
        Firm.objects.filter(pk="f").update(name=None)


def outdated(table: Table, number: int | None = 1) -> Order:
    """Return an order that was stored under its key's former prefix, and was found by an index."""
    order = Order.objects.create(customer="a", number=1, coupon="c")
    item = {**order._stored, "pk": {"S": "CLIENT#a"}}
    if number is None:
        del item["number"]
    order.delete()
    table.send(Request("PutItem", {"Item": item}))
    return Order.objects.get(coupon="c")


@pytest.mark.parametrize("number", [1, None])
def test_saving_an_item_under_a_key_of_former_templates_is_refused(table: Table, number: int | None) -> None:
    """One error names both keys and the fix, even if the current key needs a missing attribute."""
    order = outdated(table, number)
    order.status = "sent"
    with assert_requests(0), pytest.raises(OutdatedKey, match=r"pk='CLIENT#a'.*move\(\)"):
        order.save()


@pytest.mark.parametrize("number", [1, None])
def test_updating_an_item_under_a_key_of_former_templates_is_refused(table: Table, number: int | None) -> None:
    """A queryset that finds the item by an index gives the same error."""
    outdated(table, number)
    with pytest.raises(OutdatedKey, match="CLIENT#a"):
        Order.objects.filter(coupon="c").update(status="sent")


@pytest.mark.parametrize("number", [1, None])
def test_move_stores_an_object_under_its_present_key(table: Table, number: int | None) -> None:
    """The fix from the error works: after one transaction, the object can be found and saved normally."""
    order = outdated(table, number)
    with assert_requests(["TransactWriteItems"]):
        order.move(number=1)
    assert list(stored(table)) == ["CUSTOMER#a"]
    order.status = "sent"
    order.save()
    assert Order.objects.get(pk=order.pk).status == "sent"


def test_an_object_under_a_key_of_former_templates_can_be_deleted(table: Table) -> None:
    """Nothing depends on which key it has."""
    outdated(table).delete()
    assert stored(table) == {}
