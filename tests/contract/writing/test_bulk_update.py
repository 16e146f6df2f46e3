"""``bulk_update()``: some attributes of many objects, with every key and unique value that depends on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db.models import F
from django.db.models.signals import post_save, pre_save

from dynamo_single import transactions
from dynamo_single.exceptions import BulkError, InvalidValue, NotSupported, UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, intercept
from project.directory.models import Company
from tests.catalog.models import Member, Order, Resident
from tests.contract.tables import claims

pytestmark = pytest.mark.usefixtures("companies")


@pytest.fixture
def companies(table: Table) -> None:
    """Three companies and three members."""
    Company.objects.bulk_create([Company(company_id=f"c{number}", name=f"Company {number}") for number in (1, 2, 3)])
    Member.objects.bulk_create([Member(member_id=f"m{n}", email=f"{n}@example.org", badge=n) for n in (1, 2, 3)])


def all_companies() -> list[Company]:
    """The companies, by name."""
    return list(Company.objects.order_by("name"))


def test_each_object_has_values_of_its_own() -> None:
    """Each object takes one update, and its index keys are updated."""
    found = all_companies()
    for obj, name in zip(found, ("Zeta", "Acme", "Beta"), strict=True):
        obj.name = name
    with assert_requests(["UpdateItem"] * 3):
        assert Company.objects.bulk_update(found, ["name"]) == 3
    assert [company.pk for company in all_companies()] == ["c2", "c3", "c1"]


def test_only_the_named_attributes_are_saved() -> None:
    """Other changes stay unsaved, and the update time is set."""
    (first, *_), before = all_companies(), Company.objects.get(pk="c1").updated_at
    first.name, first.stock = "New", "NEW"
    assert Company.objects.bulk_update([first], ["stock"]) == 1
    stored = Company.objects.get(pk="c1")
    assert (stored.name, stored.stock) == ("Company 1", "NEW")
    assert stored.updated_at >= before
    first.save()
    assert Company.objects.get(pk="c1").name == "New"


def test_what_is_named_is_sent_also_if_it_did_not_change() -> None:
    """Another process may have changed the value since the read."""
    found = all_companies()
    found[1].stock = "NEW"
    with assert_requests(["UpdateItem"] * 3):
        assert Company.objects.bulk_update(found, ["stock", "name"], batch_size=2) == 3


def test_objects_that_are_gone_are_not_counted() -> None:
    """As in Django, an update of a missing object does not create it."""
    found = all_companies()
    for obj in found:
        obj.stock = "NEW"
    Company.objects.get(pk="c2").hard_delete()
    assert Company.objects.bulk_update(found, ["stock"]) == 2
    assert not Company.all_objects.filter(pk="c2").exists()
    unknown = Company(company_id="c9", name="x", stock="NEW")
    assert Company.objects.bulk_update([unknown], ["stock"]) == 0


def test_an_object_that_was_not_read_is_read_first() -> None:
    """The object's keys depend on stored values, so it takes one GetItem and one UpdateItem."""
    with assert_requests(["GetItem", "UpdateItem"]):
        assert Company.objects.bulk_update([Company(company_id="c1", name="New")], ["name"]) == 1
    assert Company.objects.get(pk="c1").name == "New"


def test_another_writers_change_is_kept() -> None:
    """The object is refreshed from the item, and its own values are written."""
    found = all_companies()[:1]
    found[0].name = "New"
    done: list[bool] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "UpdateItem" and not done:
            done.append(True)
            Company.objects.filter(pk="c1").update(name="Other", stock="OTH")

    with intercept(interceptor):
        assert Company.objects.bulk_update(found, ["name"]) == 1
    stored = Company.objects.get(pk="c1")
    assert (stored.name, stored.stock) == ("New", "OTH")
    assert [company.name for company in all_companies()].count("New") == 1


def test_computed_copies_follow() -> None:
    """A folded copy is written with its source."""
    resident = Resident.objects.create(last_name="Abel")
    resident.last_name = "ZEBRA"
    assert Resident.objects.bulk_update([resident], ["last_name"]) == 1
    assert Resident.objects.get(last_name__iexact="zebra").pk == resident.pk


def test_unique_values_move_with_their_objects(table: Table) -> None:
    """Each object can get a different new value."""
    found = list(Member.objects.all())
    for obj in found:
        obj.email = f"new-{obj.pk}@example.org"
    with assert_requests(["TransactWriteItems"] * 3):
        assert Member.objects.bulk_update(found, ["email"]) == 3
    assert {key for key in claims(table) if "email" in key} == {
        f"UNIQUE#Member#email#new-m{number}@example.org" for number in (1, 2, 3)
    }


def test_expressions_are_worked_out_for_each_object() -> None:
    """``F()`` is of the object's own item."""
    for number in (1, 2):
        Order.objects.create(customer="c", number=number, total=number)
    found = list(Order.objects.filter(customer="c"))
    for obj in found:
        obj.total = F("total") + 10
    assert Order.objects.bulk_update(found, ["total"]) == 2
    assert [obj.total for obj in found] == [11, 12]
    assert list(Order.objects.filter(customer="c").values_list("total", flat=True)) == [11, 12]


def test_no_signals_are_sent() -> None:
    """As in Django, no signal is sent."""
    told: list[Any] = []

    def note(**arguments: Any) -> None:
        told.append(arguments)

    found = all_companies()
    found[0].name = "New"
    for signal in (pre_save, post_save):
        signal.connect(note)
    try:
        Company.objects.bulk_update(found, ["name"])
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(note)
    assert told == []


def test_within_a_block_all_are_one_transaction() -> None:
    """The block sends all updates together at its end."""
    found = all_companies()
    for obj in found:
        obj.name = f"New {obj.pk}"
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        assert Company.objects.bulk_update(found, ["name"]) == 3
    assert [company.name for company in all_companies()] == ["New c1", "New c2", "New c3"]


def changed(**values: Any) -> list[Member]:
    """The stored members, with other values of one attribute."""
    found = {obj.pk: obj for obj in Member.objects.all()}
    for pk, (name, value) in values.items():
        setattr(found[pk], name, value)
    return list(found.values())


@pytest.mark.parametrize(
    ("given", "fields", "error", "message"),
    [
        (lambda: [Member()], [], ValueError, "Field names must be given to bulk_update()."),
        (lambda: [Member()], ["nonsense"], ValueError, "nonsense"),
        (lambda: [Member()], ["member_id"], ValueError, "member_id"),
        (lambda: [Member(member_id=None)], ["name"], ValueError, "must have a primary key set"),
        (
            lambda: [Company(name="x")],
            ["name"],
            TypeError,
            "bulk_update() of catalog.Member got directory.Company with pk 'company-",
        ),
        (lambda: [Member(member_id="m1", name=5)], ["name"], InvalidValue, "catalog.Member: name must be a string"),
        (
            lambda: [Member(member_id="m1", name="a"), Member(member_id="m1", name="b")],
            ["name"],
            InvalidValue,
            "bulk_update() got two objects with pk 'm1'",
        ),
        (
            lambda: changed(m1=("badge", 9), m2=("badge", 9)),
            ["badge"],
            UniqueViolation,
            "bulk_update() got two catalog.Member objects with badge 9: pk 'm1' and 'm2'. Nothing was written.",
        ),
        (
            lambda: changed(m1=("badge", 2), m2=("badge", 5)),
            ["badge"],
            NotSupported,
            "bulk_update() cannot give badge 2 of the catalog.Member with pk 'm2' to the object with pk 'm1'",
        ),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_written(
    given: Callable[[], list[Any]], fields: list[str], error: type[Exception], message: str
) -> None:
    """Names, values, and conflicts between two objects are checked first."""
    objects = given()
    with assert_requests(0), pytest.raises(error) as raised:
        Member.objects.bulk_update(objects, fields)
    assert message in str(raised.value)


def test_one_object_given_twice_is_written_once() -> None:
    """The same object does not conflict with itself."""
    found = all_companies()[:1]
    found[0].name = "New"
    with assert_requests(["UpdateItem"]):
        assert Company.objects.bulk_update(found * 2, ["name"]) == 1


def test_a_value_that_another_object_holds_is_told() -> None:
    """The other objects are written, and the error names the failed one."""
    found = changed(m1=("badge", 7), m2=("badge", 8), m3=("badge", 9))
    Member.objects.create(member_id="m4", email="4@example.org", badge=8)
    with pytest.raises(BulkError) as raised:
        Member.objects.bulk_update(found, ["badge"])
    assert len(raised.value.failed) == 1
    assert isinstance(raised.value.failed["m2"], UniqueViolation)
    assert {*raised.value.written} == {"m1", "m3"}
