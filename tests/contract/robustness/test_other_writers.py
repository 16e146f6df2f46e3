"""An object may be outdated: no write reverts another process's change, and every state is reported correctly."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from django.core import serializers
from django.core.exceptions import ValidationError
from django.db.models.signals import post_delete, pre_delete
from django.utils import timezone

from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import (
    AlreadyExists,
    Conflict,
    EndpointUnreachable,
    InvalidValue,
    NotSupported,
    StaleObject,
    UniqueViolation,
)
from dynamo_single.signals import post_restore, post_soft_delete
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, intercept, refuse
from project.directory.models import Company, Person
from tests.catalog.clubs import Club, Player, Team
from tests.catalog.models import Coupon, Entry, Firm, Member, Order, Sample
from tests.contract.tables import assert_consistent

pytestmark = pytest.mark.usefixtures("table")


def claims(table: Table) -> set[str]:
    """The unique claims in the table."""
    items = table.send(Request("Scan"))["Items"]
    return {item["pk"]["S"] for item in items if item["pk"]["S"].startswith("UNIQUE#")}


def put_away(table: Table, key: str, *names: str) -> None:
    """Take attributes out of a stored item, as if they were younger than it."""
    expression = "REMOVE " + ", ".join(f"#n{number}" for number, _ in enumerate(names))
    params = {
        "Key": {"pk": {"S": key}, "sk": {"S": "#METADATA"}},
        "UpdateExpression": expression,
        "ExpressionAttributeNames": {f"#n{number}": name for number, name in enumerate(names)},
    }
    table.send(Request("UpdateItem", params))


# refreshing


def test_a_partial_refresh_does_not_bring_old_values_back() -> None:
    """After ``refresh_from_db(fields=...)`` a save still sends only what this object changed."""
    Sample.objects.create(sample_id="s", text="a", integer=1)
    mine, theirs = Sample.objects.get(pk="s"), Sample.objects.get(pk="s")
    theirs.integer = 2
    theirs.save()
    mine.refresh_from_db(fields=["text"])
    mine.text = "b"
    mine.save()
    found = Sample.objects.get(pk="s")
    assert (found.text, found.integer) == ("b", 2)


def test_a_refresh_forgets_related_objects() -> None:
    """Prefetched objects are read again after a refresh."""
    Company.objects.create(company_id="c1", name="Acme")
    person = Person.objects.create(company_id="c1", name="Mike")
    assert person.company.name == "Acme"
    Company.objects.filter(pk="c1").update(name="Renamed")
    person.refresh_from_db()
    assert person.company.name == "Renamed"


def test_a_refresh_reads_through_the_given_queryset() -> None:
    """``from_queryset`` decides which object there is."""
    company = Company.objects.create(company_id="c1", name="Acme")
    with pytest.raises(Company.DoesNotExist):
        company.refresh_from_db(from_queryset=Company.objects.filter(stock="none"))


# soft delete and restore


def test_soft_delete_and_restore_do_not_undo_another_writers_change(table: Table) -> None:
    """An outdated object is refreshed, so that its next save keeps another process's change."""
    member = Member.objects.create(member_id="m1", email="a@example.org", name="one")
    other = Member.objects.get(pk="m1")
    other.email, other.name = "b@example.org", "two"
    other.save()
    member.delete()
    member.restore()
    member.badge = 7
    member.save()
    found = Member.objects.get(pk="m1")
    assert (found.email, found.name, found.badge) == ("b@example.org", "two", 7)
    assert "UNIQUE#Member#email#b@example.org" in claims(table)


def test_unsaved_changes_survive_a_soft_delete() -> None:
    """A deletion writes only the deletion, and keeps unsaved values in memory."""
    member = Member.objects.create(member_id="m1", email="a@example.org", name="one")
    member.name = "unsaved"
    member.delete()
    assert Member.deleted_objects.get(pk="m1").name == "one"
    assert member.name == "unsaved"


def test_restore_and_delete_look_at_the_table_before_they_do_nothing() -> None:
    """An outdated object reads the table before it restores or deletes."""
    company = Company.objects.create(company_id="c1", name="Acme")
    Company.objects.get(pk="c1").delete()
    # The children of both kinds are searched before and after the write.
    with assert_requests(["GetItem", "Query", "UpdateItem", "Query"]):
        assert company.restore() == (1, {"directory.Company": 1})
    company.delete()
    Company.deleted_objects.get(pk="c1").restore()
    assert company.delete() == (1, {"directory.Company": 1})


@pytest.mark.parametrize("into_trash", [True, False], ids=["delete", "restore"])
def test_the_trash_takes_account_of_an_index_that_another_writer_put_the_object_into(*, into_trash: bool) -> None:
    """Another process set an optional attribute: the trash removes its index key, and a restoration writes it."""
    entry = Entry.objects.create(shelf="s", slot=1, expires_at=timezone.now() + timedelta(days=1))
    if not into_trash:
        entry.delete()
    Entry.all_objects.filter(pk=entry.pk).update(score=1)
    (entry.delete if into_trash else entry.restore)()
    assert_consistent()


def test_restoring_what_is_gone_for_good_says_so() -> None:
    """A purged object cannot be restored."""
    company = Company.objects.create(company_id="c1", name="Acme")
    company.delete()
    Company.deleted_objects.get(pk="c1").hard_delete()
    with pytest.raises(Company.DoesNotExist):
        company.restore()


def test_an_object_that_was_never_stored_cannot_be_restored() -> None:
    """As for a deletion, the error is a ``ValueError``."""
    with pytest.raises(ValueError, match="can't be restored because it is not stored"):
        Company(name="x").restore()


def test_hard_delete_of_an_object_that_was_restored_leaves_no_claim_behind(table: Table) -> None:
    """The purge fails, since the object holds unique values again that it does not know."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    member.delete()
    Member.deleted_objects.get(pk="m1").restore()
    with pytest.raises(StaleObject, match="restored from the trash"):
        member.hard_delete()
    member.refresh_from_db()
    member.hard_delete()
    assert claims(table) == set()


@pytest.mark.parametrize("into_trash", [True, False], ids=["delete", "restore"])
def test_the_trash_takes_account_of_a_claim_that_another_writer_took(table: Table, *, into_trash: bool) -> None:
    """An object without a known unique value neither leaves another process's claim, nor is restored without it."""
    club = Club.objects.create(club_id="c", name="Club")
    team = Team.objects.create(club=club, team_id="t")
    mine = Player.objects.create(player_id="p", team=team)
    if not into_trash:
        mine.delete()
    theirs = Player.all_objects.get(pk="p")
    theirs.number = "7"
    theirs.save()
    mine.delete() if into_trash else mine.restore()
    assert [str(finding) for finding in verify()] == []
    assert ("UNIQUE#Player#number#7" in claims(table)) is not into_trash


def test_hard_delete_of_what_is_gone_counts_nothing_although_its_value_was_taken() -> None:
    """It does not matter that another object has the value."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    other = Member.objects.get(pk="m1")
    member.hard_delete()
    Member.objects.create(member_id="m2", email="a@example.org")
    assert other.hard_delete() == (0, {"catalog.Member": 0})


# attributes that are younger than an item


def test_the_default_of_a_missing_attribute_is_shown_and_not_written(table: Table) -> None:
    """A save of another attribute does not write an attribute that the loaded item lacked."""
    company = Company.objects.create(company_id="c1", name="Acme", public=True)
    put_away(table, "COMPANY#c1", "public")
    mine, theirs = Company.objects.get(pk="c1"), Company.objects.get(pk="c1")
    assert mine.public is False
    theirs.public = True
    theirs.save()
    mine.stock = "ACM"
    mine.save()
    company.refresh_from_db()
    assert (company.public, company.stock) == (True, "ACM")


@pytest.mark.parametrize("way", ["save", "queryset"])
def test_a_missing_attribute_is_given_its_default_by_name(table: Table, way: str) -> None:
    """Naming the attribute writes it, so that old items can be completed."""
    company = Company.objects.create(company_id="c1", name="Acme")
    put_away(table, "COMPANY#c1", "public")
    company = Company.objects.get(pk="c1")
    if way == "save":
        company.save(update_fields=["public"])
    else:
        Company.objects.filter(pk="c1").update(public=False)
    assert Company.objects.filter(name="Acme", public=False).exists()


def test_force_update_writes_the_key_of_a_new_index(table: Table) -> None:
    """A forced save adds an item to an index that is newer; a scan of the table finds such items."""
    Company.objects.create(company_id="c1", name="Acme")
    put_away(table, "COMPANY#c1", "gs1pk", "gs1sk")
    assert not Company.objects.filter(name="Acme").exists()
    with assert_requests(["Scan", "UpdateItem"]):
        for company in Company.objects.using_index("primary").allow_scan():
            company.save(force_update=True)
    assert Company.objects.get(name="Acme").pk == "c1"


def test_update_fields_looks_at_those_alone(table: Table) -> None:
    """Another attribute may be wrong in memory without being in the way."""
    company = Company.objects.create(company_id="c1", name="Acme")
    company.name = None  # type: ignore[assignment]  # wrong on purpose
    company.stock = "ACM"
    company.save(update_fields=["stock"])
    assert Company.objects.get(pk="c1").name == "Acme"


def test_naming_an_automatic_timestamp_touches_the_object() -> None:
    """``update_fields=["updated_at"]`` writes the time by itself."""
    company = Company.objects.create(company_id="c1", name="Acme")
    time.sleep(0.002)  # a timestamp has milliseconds
    with assert_requests(["UpdateItem"]):
        company.save(update_fields=["updated_at"])


def test_true_is_not_one_in_a_document() -> None:
    """A save detects a change between values that are equal in Python."""
    sample = Sample.objects.create(sample_id="s", data={"flag": 1})
    sample.data = {"flag": True}
    sample.save()
    assert Sample.objects.get(pk="s").data["flag"] is True


# copying


def test_djangos_copy_idiom_makes_a_new_object() -> None:
    """``pk = None`` and ``_state.adding = True`` give the copy an identifier of its own."""
    sample = Sample.objects.create(sample_id="s", text="a")
    sample.pk = None
    sample._state.adding = True
    sample.save()
    assert sample.pk not in (None, "s")
    assert {each.text for each in Sample.objects.all()} == {"a"}
    assert Sample.objects.count() == 2


def half_a_copy(obj: Any, **values: Any) -> Any:
    """Change the object's key without resetting Django's marker for new objects."""
    for name, value in values.items():
        setattr(obj, name, value)
    return obj


@pytest.mark.parametrize(
    "copy",
    [
        lambda: half_a_copy(Sample.objects.create(sample_id="s"), pk=None).save(),
        lambda: half_a_copy(Person.objects.create(company_id="c", person_id="p", name="Ann"), pk=None).save(),
        lambda: half_a_copy(Order.objects.create(customer="ann", number=1), number=2).save(),
        lambda: half_a_copy(Order.objects.create(customer="ann", number=1), pk=None),
    ],
    ids=["an identifier", "a key of several", "another key", "a key without a default"],
)
def test_half_of_djangos_copy_idiom_names_the_other_half(copy: Any) -> None:
    """The error of a loaded object with a missing or different key names ``_state.adding``."""
    with pytest.raises((InvalidValue, NotSupported), match=r"_state\.adding = True"):
        copy()


# signals


def test_signals_of_deleting_restoring_and_purging() -> None:
    """Soft delete and restore have separate signals; Django's are sent for permanent deletions."""
    seen: list[str] = []
    receivers = {
        name: lambda name=name, **kwargs: seen.append(name)
        for name in ("post_soft_delete", "post_restore", "pre_delete", "post_delete")
    }
    signals = {
        "post_soft_delete": post_soft_delete,
        "post_restore": post_restore,
        "pre_delete": pre_delete,
        "post_delete": post_delete,
    }
    for name, signal in signals.items():
        signal.connect(receivers[name], sender=Company)
    try:
        company = Company.objects.create(company_id="c1", name="Acme")
        company.delete()
        company.delete()
        company.restore()
        company.hard_delete()
    finally:
        for name, signal in signals.items():
            signal.disconnect(receivers[name], sender=Company)
    assert seen == ["post_soft_delete", "post_restore", "pre_delete", "post_delete"]


# items that expire


def test_an_expired_item_is_no_obstacle(table: Table) -> None:
    """Its key and its unique values are free, although DynamoDB has not deleted it yet."""
    past, future = timezone.now() - timedelta(days=1), timezone.now() + timedelta(days=1)
    Coupon.objects.create(code="c", email="a@example.org", expires_at=past)
    _, created = Coupon.objects.get_or_create(code="c", defaults={"email": "a@example.org", "expires_at": future})
    assert created
    with pytest.raises(UniqueViolation):
        Coupon.objects.create(code="d", email="a@example.org")
    with pytest.raises(AlreadyExists):
        Coupon.objects.create(code="c", email="b@example.org")


def test_a_claim_expires_with_its_owner(table: Table) -> None:
    """The claim carries the owner's time to live, and follows when that changes."""
    coupon = Coupon.objects.create(code="c", email="a@example.org", expires_at=datetime(2100, 1, 1, tzinfo=UTC))
    coupon.expires_at = datetime(2101, 1, 1, tzinfo=UTC)
    coupon.save()
    stored = {item["expiresAt"]["N"] for item in table.send(Request("Scan"))["Items"]}
    assert stored == {str(int(datetime(2101, 1, 1, tzinfo=UTC).timestamp()))}


# lost responses and conflicts


def lose_answer(table: Table, operation: str) -> Any:
    """Return an interceptor that executes the first such request and loses its response."""
    lost: list[str] = []

    def interceptor(sent: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        if sent != operation or lost:
            return None
        lost.append(sent)
        table.call(sent, params)
        raise ReadTimeoutError(endpoint_url="http://127.0.0.1")

    return intercept(interceptor)


def test_an_update_whose_answer_was_lost_can_be_repeated(table: Table) -> None:
    """The second save finds its own values and is content."""
    company = Company.objects.create(company_id="c1", name="Acme")
    company.name = "Beta"
    with lose_answer(table, "UpdateItem"), pytest.raises(EndpointUnreachable, match="it may have been executed"):
        company.save(update_fields=["name"])
    company.save()
    assert Company.objects.get(pk="c1").name == "Beta"


def test_a_conflict_with_another_transaction_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is retried a few times after pauses."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0.0)
    with refuse("TransactionConflictException", times=2), assert_requests(["PutItem"] * 3):
        Firm.objects.create(firm_id="f", name="n", stock="s")
    cancelled = {"CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}]}
    with (
        refuse("TransactionCanceledException", times=2, **cancelled),
        assert_requests(["TransactWriteItems"] * 3) as sent,
    ):
        Member.objects.create(email="a@example.org")
    assert len({request.params["ClientRequestToken"] for request in sent}) == 1
    with refuse("TransactionConflictException"), pytest.raises(Conflict, match="Another transaction was writing"):
        Firm.objects.create(firm_id="g", name="n", stock="s")


# fixtures, forms, PynamoDB


def test_fixtures_keep_automatic_timestamps(table: Table) -> None:
    """Loading a fixture writes the times that it holds."""
    company = Company.objects.create(company_id="c1", name="Acme")
    text = serializers.serialize("json", [company]).replace(company.created_at.strftime("%Y-"), "2020-")
    for loaded in serializers.deserialize("json", text):
        loaded.save()
    found = Company.objects.get(pk="c1")
    assert (found.created_at.year, found.updated_at.year) == (2020, 2020)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"name": "n" * 100, "company_id": "c" * 2100}, "2048"), ({"company_id": "x", "name": "n"}, "cannot change")],
)
def test_full_clean_finds_what_a_key_cannot_hold(values: dict[str, str], message: str) -> None:
    """A form reports a too long key or a changed primary key before save() would."""
    company = Company.objects.create(company_id="c1", name="Acme")
    for name, value in values.items():
        setattr(company, name, value)
    with pytest.raises(ValidationError, match=message):
        company.full_clean(validate_unique=False)


@pytest.mark.parametrize(
    ("obj", "field", "requests"),
    [
        (Member(member_id="m1", email="a" * 2100 + "@example.org"), "email", 1),
        (Company(company_id="c" * 2100, name="x"), "company_id", 0),
    ],
)
def test_validate_unique_reports_a_value_that_no_key_can_hold(obj: Any, field: str, requests: int) -> None:
    """The error belongs to the field and does not need a request; the other unique value is looked up."""
    with assert_requests(requests), pytest.raises(ValidationError, match="2048") as raised:
        obj.validate_unique()
    assert set(raised.value.message_dict) == {field}


def test_pynamodbs_projections_are_refused() -> None:
    """A partial object would be saved with wrong keys, so projections raise an error."""
    with assert_requests(0), pytest.raises(NotSupported, match="attributes_to_get"):
        Company.get("COMPANY#c1", "#METADATA", attributes_to_get=["name"])


def test_pynamodbs_deserialize_fills_the_object() -> None:
    """An object takes over the values of an item that PynamoDB gives it."""
    first = Company.objects.create(company_id="c1", name="Acme")
    other = Company(company_id="c2", name="x")
    other.deserialize(first.serialize())
    assert (other.pk, other.name) == ("c1", "Acme")
