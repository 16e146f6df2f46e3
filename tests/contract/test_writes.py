"""Saving and deleting on the real engine: what is written, under which condition, and what a failure leaves behind."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models.signals import post_save, pre_save
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import (
    AlreadyExists,
    EmptyKeyPart,
    InvalidValue,
    ItemTooLarge,
    NotSupported,
    StaleObject,
    UniqueViolation,
)
from dynamo_single.query import Request
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Firm, Member, Order, Product, Sample

pytestmark = pytest.mark.usefixtures("table")


def stored(table: Table) -> dict[str, dict[str, Any]]:
    """Every item of the table by its partition key."""
    return {item["pk"]["S"]: item for item in table.send(Request("Scan"))["Items"]}


def claims(table: Table) -> dict[str, str]:
    """The unique claims in the table: each one's key, and its owner's partition key."""
    return {key: item["ownerPk"]["S"] for key, item in stored(table).items() if key.startswith("UNIQUE#")}


# creating


def test_create_is_one_conditional_put(sent: list[SentRequest]) -> None:
    """A new object is put under the condition that its key is free."""
    Company.objects.create(company_id="c1", name="Acme")
    assert [request.operation for request in sent] == ["PutItem"]
    assert sent[0].params["ConditionExpression"] == "attribute_not_exists(#a0)"


def test_create_never_overwrites(table: Table) -> None:
    """A second object with the same key is an error, and the first stays as it is."""
    Company.objects.create(company_id="c1", name="Acme")
    with pytest.raises(AlreadyExists) as raised:
        Company.objects.create(company_id="c1", name="Other")
    assert str(raised.value) == (
        "directory.Company with pk 'c1' exists already; nothing was written. Load it to change it."
    )
    assert stored(table)["COMPANY#c1"]["name"] == {"S": "Acme"}


def test_saving_a_new_object_does_not_overwrite_either() -> None:
    """``save()`` on an object that was not read is a creation, also where the key is given."""
    Firm(firm_id="f", name="n", stock="s").save()
    with pytest.raises(AlreadyExists):
        Firm(firm_id="f", name="other", stock="s").save()


def test_an_object_in_the_trash_keeps_its_key() -> None:
    """Creating over a deleted object says that it is in the trash."""
    Company.objects.create(company_id="c1", name="Acme").delete()
    with pytest.raises(AlreadyExists, match=r"It is in the trash: restore it or delete it for good."):
        Company.objects.create(company_id="c1", name="Acme")


# bad input


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Company(name=5), InvalidValue, "directory.Company: name takes text (str), not int 5."),
        (
            lambda: Company(name="x", public="maybe"),
            InvalidValue,
            "directory.Company: public takes True or False, not str 'maybe'.",
        ),
        (
            lambda: Company(name="x", founded="soon"),
            InvalidValue,
            "directory.Company: founded takes a date, not str 'soon'.",
        ),
        (
            lambda: Company(name=None),
            InvalidValue,
            "directory.Company: name is missing: it takes text (str), or null=True.",
        ),
        (
            lambda: Order(customer="c", number=1.5),
            InvalidValue,
            "catalog.Order: number takes a whole number, not float 1.5.",
        ),
        (
            lambda: Order(customer="c", number=True),
            InvalidValue,
            "catalog.Order: number takes a whole number, not bool True.",
        ),
        (lambda: Sample(number=float("nan")), InvalidValue, "catalog.Sample: number takes a number, not float nan."),
        (lambda: Sample(data=[1]), InvalidValue, "catalog.Sample: data takes a dict, not list [1]."),
        (lambda: Sample(words={1}), InvalidValue, "catalog.Sample: words takes a set of texts, not set {1}."),
        (lambda: Sample(blob="text"), InvalidValue, "catalog.Sample: blob takes bytes, not str 'text'."),
        (lambda: Sample(token="x"), InvalidValue, "catalog.Sample: token takes a UUID, not str 'x'."),
        (
            lambda: Company(name=""),
            EmptyKeyPart,
            "directory.Company: name is empty, and the key by_name on gs1 needs it. Give name a value, or declare it "
            "blank=True to leave objects without one out of that index.",
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
        (lambda: Company(name="x", stock="s" * 409_600), ItemTooLarge, "DynamoDB stores 409600."),
        (lambda: Company(name="n" * 1_100), InvalidValue, "DynamoDB takes 1024 there. Shorten name, company_id."),
    ],
)
def test_bad_input_is_one_clear_error_and_nothing_is_sent(
    table: Table, make: Any, error: type[Exception], message: str
) -> None:
    """A wrong value is refused by the attribute's name before any request."""
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


# updating


def test_save_sends_only_what_changed(sent: list[SentRequest]) -> None:
    """A changed attribute, the keys that depend on it and the time of the change are sent, and nothing else."""
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
    """Maps and lists are compared in depth."""
    product = Product.objects.create(data={"price": Decimal("456.67"), "tags": ["a"]})
    product.data["tags"].append("b")
    product.save()
    assert Product.objects.get(pk=product.pk).data == {"price": Decimal("456.67"), "tags": ["a", "b"]}


def test_update_fields_writes_those_alone() -> None:
    """Attributes that are not named keep what the table holds."""
    company = Company.objects.create(company_id="c1", name="Acme")
    company.name, company.stock = "Beta", "BET"
    company.save(update_fields=["stock"])
    found = Company.objects.get(pk="c1")
    assert (found.name, found.stock) == ("Acme", "BET")
    assert found.serialize()["gs1sk"] == {"S": "Acme#c1"}


def test_unknown_update_fields_are_refused() -> None:
    """As in Django, a name that is no field is a ``ValueError``."""
    company = Company.objects.create(company_id="c1", name="Acme")
    with pytest.raises(ValueError, match=r"nme"):
        company.save(update_fields=["nme"])


def test_setting_none_removes_the_attribute_and_its_index_keys(table: Table) -> None:
    """An optional value that goes away takes its index key along."""
    order = Order.objects.create(customer="c", number=1, coupon="SAVE")
    order.coupon = None
    order.save()
    assert not {"coupon", "gs2pk", "gs2sk"} & set(stored(table)["CUSTOMER#c"])


def test_every_update_sets_updated_at_and_none_sets_created_at() -> None:
    """``created_at`` stays, ``updated_at`` follows, whichever way an object is written."""
    company = Company.objects.create(company_id="c1", name="Acme")
    created, updated = company.created_at, company.updated_at
    assert created is not None
    seen = [updated]
    for step in (
        lambda: company.save(update_fields=["stock"]),
        lambda: Company.objects.filter(pk="c1").update(stock="B"),
        lambda: Company.objects.get(pk="c1").delete(),
        lambda: Company.deleted_objects.get(pk="c1").restore(),
    ):
        company.stock = "A"
        step()
        company.refresh_from_db()
        seen.append(company.updated_at)
    assert company.created_at == created
    assert seen == sorted(seen)
    assert len(set(seen)) > 1


def test_a_primary_key_cannot_change() -> None:
    """An object cannot be saved under another key, which would copy it."""
    person = Person.objects.create(company_id="c1", person_id="p1", name="Mike")
    person.company_id = "c2"
    with assert_requests(0), pytest.raises(NotSupported, match=r"company_id, person_id make up the primary key"):
        person.save()


def test_an_update_never_resurrects() -> None:
    """Saving an object that was deleted meanwhile is an error, and it stays deleted."""
    firm = Firm.objects.create(firm_id="f", name="n", stock="s")
    Firm.objects.get(pk="f").delete()
    firm.name = "other"
    with pytest.raises(StaleObject, match=r"'f' was deleted since it was read; nothing was written."):
        firm.save()
    assert not Firm.objects.filter(pk="f").exists()


def test_an_update_does_not_undo_a_soft_delete() -> None:
    """Saving an object that went to the trash meanwhile is an error that says so."""
    company = Company.objects.create(company_id="c1", name="Acme")
    Company.objects.get(pk="c1").delete()
    company.stock = "X"
    with pytest.raises(StaleObject, match=r"was moved to the trash since it was read"):
        company.save()


def test_an_index_key_is_not_built_from_a_value_that_changed_meanwhile() -> None:
    """A key that two attributes make up is only written if the other one is as it was read."""
    when = datetime(2024, 1, 1, tzinfo=UTC)
    Order.objects.create(customer="c", number=1, placed_at=when, coupon="A")
    mine, theirs = Order.objects.get(customer="c", number=1), Order.objects.get(customer="c", number=1)
    theirs.placed_at = when + timedelta(days=1)
    theirs.save()
    mine.placed_at = when + timedelta(days=2)
    with pytest.raises(StaleObject, match=r"changed by another writer since it was read \(gs1sk, placed_at\)"):
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
    with pytest.raises(StaleObject, match="'c9' is not stored, so there is nothing to update"):
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


# unique values


def test_a_unique_value_is_a_claim_in_the_same_transaction(table: Table, sent: list[SentRequest]) -> None:
    """The object and the claims on its unique values are written together."""
    Member.objects.create(member_id="m1", email="Mike@Example.org", badge=7)
    assert [request.operation for request in sent] == ["TransactWriteItems"]
    assert claims(table) == {
        "UNIQUE#Member#email#mike@example.org": "MEMBER#m1",
        "UNIQUE#Member#badge#p5007": "MEMBER#m1",
    }


def test_a_taken_value_is_refused_and_nothing_is_written(table: Table) -> None:
    """The second holder gets an error that names model, field and value."""
    Member.objects.create(member_id="m1", email="mike@example.org", badge=7)
    before = stored(table)
    with pytest.raises(UniqueViolation) as raised:
        Member.objects.create(member_id="m2", email="MIKE@example.org", badge=8)
    assert str(raised.value) == "Another catalog.Member has email 'MIKE@example.org'; nothing was written."
    assert (raised.value.label, raised.value.field, raised.value.value) == (
        "catalog.Member",
        "email",
        "MIKE@example.org",
    )
    assert stored(table) == before


def test_a_changed_value_moves_the_claim(table: Table) -> None:
    """The old value is free again as soon as the new one is held."""
    member = Member.objects.create(member_id="m1", email="a@example.org", badge=7)
    member.email, member.badge = "b@example.org", None
    with assert_requests(["TransactWriteItems"]):
        member.save()
    assert claims(table) == {"UNIQUE#Member#email#b@example.org": "MEMBER#m1"}


def test_another_spelling_of_an_own_value_is_no_conflict() -> None:
    """Changing the case of one's own address needs no other claim."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    member.email = "A@Example.org"
    with assert_requests(["UpdateItem"]):
        member.save()
    assert Member.objects.get(pk="m1").email == "A@Example.org"


def test_two_renames_from_one_state_do_not_both_win(table: Table) -> None:
    """The slower rename fails, so that no claim is left without its owner."""
    Member.objects.create(member_id="m1", email="a@example.org")
    mine, theirs = Member.objects.get(pk="m1"), Member.objects.get(pk="m1")
    theirs.email = "b@example.org"
    theirs.save()
    mine.email = "c@example.org"
    with pytest.raises(StaleObject):
        mine.save()
    assert claims(table) == {"UNIQUE#Member#email#b@example.org": "MEMBER#m1"}


def test_hard_delete_frees_the_values(table: Table) -> None:
    """Deleting for good takes the claims along."""
    member = Member.objects.create(member_id="m1", email="a@example.org", badge=7)
    with assert_requests(["TransactWriteItems"]):
        assert member.hard_delete() == (1, {"catalog.Member": 1})
    assert stored(table) == {}


def test_forms_report_a_taken_value_on_its_field() -> None:
    """``validate_unique()`` asks with one GetItem for each unique value and leaves the object's own alone."""
    from django.core.exceptions import ValidationError

    member = Member.objects.create(member_id="m1", email="a@example.org")
    with assert_requests(["GetItem"]):
        member.validate_unique()
    with pytest.raises(ValidationError) as raised:
        Member(email="A@example.org").validate_unique()
    assert set(raised.value.message_dict) == {"email"}


# deleting


def test_deleting_is_one_request_and_counts() -> None:
    """A model without soft delete is deleted with one DeleteItem; a second time counts nothing."""
    firm = Firm.objects.create(firm_id="f", name="n", stock="s")
    other = Firm.objects.get(pk="f")
    with assert_requests(["DeleteItem"]):
        assert firm.delete() == (1, {"catalog.Firm": 1})
    assert other.delete() == (0, {"catalog.Firm": 0})


def test_an_object_that_is_not_stored_cannot_be_deleted() -> None:
    """As in Django, deleting a new object is a ``ValueError``."""
    with pytest.raises(ValueError, match=r"not stored"):
        Firm(firm_id="f", name="n", stock="s").delete()


def test_soft_delete_is_one_request_that_keeps_the_item(table: Table) -> None:
    """``deletedAt`` is set, the live index keys give way to the trash's, nothing else changes."""
    company = Company.objects.create(company_id="c1", name="Acme")
    before = stored(table)["COMPANY#c1"]
    with assert_requests(["UpdateItem"]):
        assert company.delete() == (1, {"directory.Company": 1})
    after = stored(table)["COMPANY#c1"]
    assert after["gs1pk"] == {"S": "TRASH#Company"}
    assert after["gs1sk"]["S"].endswith("#c1")
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert changed == {"gs1pk", "gs1sk", "deletedAt", "updatedAt"}


def test_soft_delete_frees_unique_values_and_restore_takes_them_back(table: Table) -> None:
    """A deleted object holds no claim; restoring it takes its own again."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    with assert_requests(["TransactWriteItems"]):
        member.delete()
    assert claims(table) == {}
    with assert_requests(["TransactWriteItems"]):
        member.restore()
    assert claims(table) == {"UNIQUE#Member#email#a@example.org": "MEMBER#m1"}
    assert [m.pk for m in Member.objects.all()] == ["m1"]


def test_restore_is_refused_when_the_value_was_taken_meanwhile(table: Table) -> None:
    """The object stays in the trash, and the error names the value."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    member.delete()
    Member.objects.create(member_id="m2", email="a@example.org")
    with pytest.raises(UniqueViolation, match=r"email 'a@example.org'"):
        member.restore()
    assert [m.pk for m in Member.deleted_objects.all()] == ["m1"]


def test_deleting_twice_and_restoring_a_live_object_are_harmless() -> None:
    """Both leave the object as it is, also where another reader still holds the other state."""
    company = Company.objects.create(company_id="c1", name="Acme")
    other = Company.objects.get(pk="c1")
    company.delete()
    assert company.delete() == (0, {"directory.Company": 0})
    assert other.delete() == (0, {"directory.Company": 0})
    other.restore()
    other.restore()
    assert Company.objects.get(pk="c1").deleted_at is None


def test_soft_delete_does_not_undo_another_writers_change() -> None:
    """Deleting an object that was changed meanwhile keeps the change."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    other = Member.objects.get(pk="m1")
    other.email = "b@example.org"
    other.save()
    member.delete()
    member.restore()
    assert Member.objects.get(pk="m1").email == "b@example.org"


def test_hard_delete_of_a_deleted_object_empties_the_trash() -> None:
    """An object in the trash can be deleted for good."""
    company = Company.objects.create(company_id="c1", name="Acme")
    company.delete()
    company.hard_delete()
    assert not Company.all_objects.filter(pk="c1").exists()


# what is stored is what is read


VALUES = {
    "text": st.text(max_size=30).filter(lambda text: text.isprintable()),
    "integer": st.integers(-(10**37), 10**37),
    "number": st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15, allow_subnormal=False).map(lambda f: round(f, 6)),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9),
    "flag": st.booleans(),
    "moment": st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)).map(
        lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    ),
    "day": st.dates(min_value=date(1, 1, 1)),
    "token": st.uuids(),
    "json": st.recursive(
        st.none() | st.booleans() | st.integers(-100, 100) | st.text(st.characters(codec="utf-8"), max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
        max_leaves=5,
    ).filter(lambda value: value is not None),
    "data": st.dictionaries(
        st.text("abc", min_size=1), st.integers().filter(lambda n: abs(n) < 10**30) | st.lists(st.booleans())
    ),
    "things": st.lists(st.integers(-5, 5) | st.just("x") | st.none()),
    "words": st.sets(st.text("abc", min_size=1), min_size=1),
    "numbers": st.sets(st.integers(-9, 9), min_size=1),
    "blobs": st.sets(st.binary(min_size=1, max_size=4), min_size=1),
    "blob": st.binary(min_size=1),
}


@given(values=st.fixed_dictionaries({}, optional=VALUES))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_saved_is_what_is_read(values: dict[str, Any]) -> None:
    """Every attribute type gives back exactly the value that was stored."""
    sample = Sample.objects.create(sample_id=str(uuid.uuid4()), **values)
    found = Sample.objects.get(pk=sample.pk)
    assert {name: getattr(found, name) for name in values} == values
