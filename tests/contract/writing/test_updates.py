"""Saves of loaded objects: the request, its condition, and the state after a failure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models.signals import post_save, pre_save

from dynamo_single.exceptions import NotSupported, StaleObject
from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.testing import assert_requests, frozen_time
from project.directory.models import Company, Person
from tests.catalog.models import Firm, Order, Product, Sample
from tests.contract.tables import stored

pytestmark = pytest.mark.usefixtures("table")


def test_save_sends_only_what_changed(sent: list[SentRequest]) -> None:
    """A save sends only the changed attribute, its dependent keys and the update time."""
    company = Company.objects.create(company_id="c1", name="Acme", stock="ACM")
    company.name = "Beta"
    company.save()
    assert [request.operation for request in sent] == ["PutItem", "UpdateItem"]
    names = set(sent[1].params["ExpressionAttributeNames"].values())
    # Within one millisecond updatedAt is what it was.
    assert names | {"updatedAt"} == {"name", "gs1sk", "updatedAt", "pk", "deletedAt"}


def test_save_without_a_change_sends_nothing() -> None:
    """Saving what was just read costs no request."""
    Sample.objects.create(sample_id="s", numbers={1, 2}, decimal=Decimal("1.50"), data={"a": [1, 2.5]})
    sample = Sample.objects.get(pk="s")
    with assert_requests(0):
        sample.save()


def test_a_changed_part_of_a_document_is_noticed() -> None:
    """Maps and lists are compared at any depth."""
    product = Product.objects.create(data={"price": Decimal("456.67"), "tags": ["a"]})
    product.data["tags"].append("b")
    product.save()
    assert Product.objects.get(pk=product.pk).data == {"price": Decimal("456.67"), "tags": ["a", "b"]}


def test_update_fields_writes_those_alone() -> None:
    """Other attributes keep their stored values."""
    company = Company.objects.create(company_id="c1", name="Acme")
    company.name, company.stock = "Beta", "BET"
    company.save(update_fields=["stock"])
    found = Company.objects.get(pk="c1")
    assert (found.name, found.stock) == ("Acme", "BET")
    assert found.serialize()["gs1sk"] == {"S": "Acme#c1"}


def test_unknown_update_fields_are_refused() -> None:
    """As in Django, an unknown name raises a ``ValueError``."""
    company = Company.objects.create(company_id="c1", name="Acme")
    with pytest.raises(ValueError, match=r"nme"):
        company.save(update_fields=["nme"])


def test_setting_none_removes_the_attribute_and_its_index_keys(table: Table) -> None:
    """An optional value that goes away takes its index key along."""
    order = Order.objects.create(customer="c", number=1, coupon="SAVE")
    order.coupon = None
    order.save()
    assert not {"coupon", "gs2pk", "gs2sk"} & set(stored(table)["CUSTOMER#c"])


CREATED = datetime(2026, 1, 1, 12, tzinfo=UTC)


def save(company: Company) -> None:
    """Change and save everything that changed."""
    company.stock = "A"
    company.save()


def save_one_field(company: Company) -> None:
    """Change and save one attribute by its name."""
    company.stock = "A"
    company.save(update_fields=["stock"])


def restore(company: Company) -> None:
    """Restore an object that was deleted at its creation."""
    with frozen_time(CREATED):
        company.delete()
    company.restore()


@pytest.mark.parametrize(
    "write",
    [
        save,
        save_one_field,
        lambda company: Company.objects.filter(pk=company.pk).update(stock="A"),
        lambda company: Company.objects.filter(name="Acme").update(stock="A"),
        lambda company: Company.objects.update_or_create(pk=company.pk, defaults={"stock": "A"}),
        lambda company: company.delete(),
        lambda company: Company.objects.filter(pk=company.pk).delete(),
        restore,
    ],
    ids=[
        "save",
        "update_fields",
        "update",
        "update by index",
        "update_or_create",
        "delete",
        "delete of many",
        "restore",
    ],
)
def test_every_way_to_write_sets_updated_at_alone(write: Callable[[Company], Any]) -> None:
    """Every write sets ``updated_at`` to its time, and keeps ``created_at``."""
    with frozen_time(CREATED):
        company = Company.objects.create(company_id="c1", name="Acme")
    later = CREATED + timedelta(hours=1)
    with frozen_time(later):
        write(company)
    found = Company.all_objects.get(pk="c1")
    assert (found.created_at, found.updated_at) == (CREATED, later)


def test_a_primary_key_cannot_change() -> None:
    """Saving under another key would copy the object, so it raises an error."""
    person = Person.objects.create(company_id="c1", person_id="p1", name="Mike")
    person.company_id = "c2"
    with assert_requests(0), pytest.raises(NotSupported, match=r"company_id, person_id make up the primary key"):
        person.save()


def test_an_update_never_resurrects() -> None:
    """Saving a deleted object raises an error, and it stays deleted."""
    firm = Firm.objects.create(firm_id="f", name="n", stock="s")
    Firm.objects.get(pk="f").delete()
    firm.name = "other"
    with pytest.raises(StaleObject, match=r"'f' was deleted since it was read. Nothing was written."):
        firm.save()
    assert not Firm.objects.filter(pk="f").exists()


def test_an_update_does_not_undo_a_soft_delete() -> None:
    """Saving an object that is in the trash by now raises an error that says this."""
    company = Company.objects.create(company_id="c1", name="Acme")
    Company.objects.get(pk="c1").delete()
    company.stock = "X"
    with pytest.raises(StaleObject, match=r"was moved to the trash since it was read"):
        company.save()


def test_an_index_key_is_not_built_from_a_value_that_changed_meanwhile() -> None:
    """A key of two attributes is written only if the other attribute has not changed since the read."""
    when = datetime(2024, 1, 1, tzinfo=UTC)
    Order.objects.create(customer="c", number=1, placed_at=when, coupon="A")
    mine, theirs = Order.objects.get(customer="c", number=1), Order.objects.get(customer="c", number=1)
    theirs.placed_at = when + timedelta(days=1)
    theirs.save()
    mine.placed_at = when + timedelta(days=2)
    with pytest.raises(StaleObject, match=r"changed by another process since it was read \(gs1sk, placed_at\)"):
        mine.save()


def test_two_writers_of_different_attributes_do_not_undo_each_other() -> None:
    """Each sends its own change only."""
    Sample.objects.create(sample_id="s", text="a", integer=1)
    mine, theirs = Sample.objects.get(pk="s"), Sample.objects.get(pk="s")
    theirs.text = "b"
    theirs.save()
    mine.integer = 2
    mine.save()
    found = Sample.objects.get(pk="s")
    assert (found.text, found.integer) == ("b", 2)


def test_attributes_of_other_writers_are_kept(table: Table) -> None:
    """An attribute that the model does not know stays in the item."""
    company = Company.objects.create(company_id="c1", name="Acme")
    key = {"pk": {"S": "COMPANY#c1"}, "sk": {"S": "#METADATA"}}
    table.send(
        Request(
            "UpdateItem",
            {"Key": key, "UpdateExpression": "SET another = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}},
        )
    )
    company = Company.objects.get(pk="c1")
    company.stock = "ACM"
    company.save()
    assert stored(table)["COMPANY#c1"]["another"] == {"S": "x"}


def test_force_update_of_a_missing_object_raises() -> None:
    """``force_update`` never creates."""
    with pytest.raises(StaleObject, match="'c9': it does not exist in the table"):
        Company(company_id="c9", name="x").save(force_update=True)


def test_save_signals_are_djangos() -> None:
    """``pre_save`` and ``post_save`` come with Django's arguments."""
    seen: list[tuple[str, Any]] = []

    def before(**kwargs: Any) -> None:
        seen.append(("pre", kwargs["update_fields"]))

    def after(**kwargs: Any) -> None:
        seen.append(("post", kwargs["created"]))

    pre_save.connect(before, sender=Company)
    post_save.connect(after, sender=Company)
    try:
        company = Company.objects.create(company_id="c1", name="Acme")
        company.stock = "A"
        company.save(update_fields=["stock"])
    finally:
        pre_save.disconnect(before, sender=Company)
        post_save.disconnect(after, sender=Company)
    assert seen == [("pre", None), ("post", True), ("pre", frozenset({"stock"})), ("post", False)]
