"""The checker finds and repairs every kind of inconsistency between items."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import Group, User
from dynamo_single import transactions
from dynamo_single.cache import DynamoCache
from dynamo_single.contrib.doctor import walk
from dynamo_single.contrib.doctor.walk import Finding, repair, verify
from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.sessions import SessionStore
from dynamo_single.table import Request, SentRequest, Table, intercept
from dynamo_single.translated import sentence
from tests.catalog.boards import Board, Card, Label, Note, Task
from tests.catalog.models import (
    Coupon,
    Employee,
    Entry,
    Firm,
    Member,
    Order,
    Product,
    Resident,
    Sample,
    Site,
    Ticket,
)
from tests.catalog.seats import Essay, EssayWord, Seat
from tests.contract.tables import assert_consistent

Item = dict[str, dict[str, Any]]

EMAIL = ("UNIQUE#Member#email#a@example.org", "#CLAIM")
OTHER_EMAIL = ("UNIQUE#Member#email#b@example.org", "#CLAIM")
M1, M2 = ("MEMBER#m1", "#METADATA"), ("MEMBER#m2", "#METADATA")


def put(table: Table, item: Item) -> None:
    """Write an item past everything."""
    table.send(Request("PutItem", {"Item": item}))


def get(table: Table, key: tuple[str, str]) -> Item:
    """Read an item."""
    found: Item = table.send(Request("GetItem", {"Key": item_key(key), "ConsistentRead": True})).get("Item", {})
    return found


def remove(table: Table, key: tuple[str, str]) -> None:
    """Delete an item past everything."""
    table.send(Request("DeleteItem", {"Key": item_key(key)}))


def change(table: Table, key: tuple[str, str], **texts: str | None) -> None:
    """Set attributes of an item past everything; ``None`` takes one away."""
    item = {name: value for name, value in get(table, key).items() if name not in texts}
    put(table, item | {name: {"S": text} for name, text in texts.items() if text is not None})


def members(table: Table) -> None:
    """Two members."""
    Member.objects.create(member_id="m1", email="a@example.org", name="Anna")
    Member.objects.create(member_id="m2", email="b@example.org", name="Bert")


def claim_of(owner: tuple[str, str], key: tuple[str, str]) -> Item:
    """A claim."""
    return {
        **item_key(key),
        "itemType": {"S": "UniqueClaim"},
        "ownerPk": {"S": owner[0]},
        "ownerSk": {"S": owner[1]},
    }


def orphan_without_owner(table: Table) -> None:
    """A claim whose owner is not there."""
    put(table, claim_of(("MEMBER#gone", "#METADATA"), ("UNIQUE#Member#email#c@example.org", "#CLAIM")))


def orphan_of_another_value(table: Table) -> None:
    """Create a claim on a value that its owner does not have."""
    put(table, claim_of(M1, ("UNIQUE#Member#email#c@example.org", "#CLAIM")))


def orphan_of_a_deleted_owner(table: Table) -> None:
    """A claim of an object in the trash."""
    claim = get(table, EMAIL)
    Member.objects.get(pk="m1").delete()
    put(table, claim)


def orphan_of_nobody(table: Table) -> None:
    """A claim without an owner."""
    claim = claim_of(M1, ("UNIQUE#Member#email#c@example.org", "#CLAIM"))
    put(table, {name: value for name, value in claim.items() if name != "ownerPk"})


def missing_claim(table: Table) -> None:
    """Remove the claim of an object."""
    remove(table, EMAIL)


def claim_of_nobody(table: Table) -> None:
    """A required claim without an owner."""
    change(table, EMAIL, ownerPk=None)


def claim_of_somebody_gone(table: Table) -> None:
    """Give an object's claim to a missing owner."""
    change(table, EMAIL, ownerPk="MEMBER#gone")


def claim_of_who_has_another(table: Table) -> None:
    """Give an object's claim to an object that does not need it."""
    change(table, EMAIL, ownerPk="MEMBER#m2")


def missing_partition(table: Table) -> None:
    """An item with the sort key of an index only."""
    change(table, M1, gs1pk=None)


def missing_sort(table: Table) -> None:
    """An item with the partition key of an index only."""
    change(table, M1, gs1sk=None)


def outdated_key(table: Table) -> None:
    """An index key of another value."""
    change(table, M1, gs1sk="old@example.org")


def missing_key(table: Table) -> None:
    """An item that is younger than the index that it should be in."""
    change(table, M1, gs1pk=None, gs1sk=None)


def foreign_key(table: Table) -> None:
    """A key on an index that the model does not use."""
    change(table, M1, gs2pk="X", gs2sk="Y")


def live_key(table: Table) -> None:
    """Leave a deleted object in a list."""
    pair = {name: get(table, M1)[name]["S"] for name in ("gs1pk", "gs1sk")}
    Member.objects.get(pk="m1").delete()
    change(table, M1, **pair)


def folded_copy(table: Table) -> None:
    """Store a copy of another string, with a key that matches it."""
    Resident.objects.create(resident_id="r", last_name="\u00c9mile")
    change(table, ("RESIDENT#r", "#METADATA"), lastNameCanonical="somebody")


def missing_copy(table: Table) -> None:
    """Remove the copy of an object, and its index key."""
    Resident.objects.create(resident_id="r", last_name="\u00c9mile", nickname="Em")
    change(table, ("RESIDENT#r", "#METADATA"), nicknameCanonical=None)


def copy_of_nothing(table: Table) -> None:
    """Leave a copy without its source."""
    Resident.objects.create(resident_id="r", last_name="\u00c9mile")
    change(table, ("RESIDENT#r", "#METADATA"), nicknameCanonical="em")


def lasting_claim(table: Table) -> None:
    """A claim that does not expire with its owner."""
    Coupon.objects.create(code="c", email="c@example.org", expires_at=timezone.now() + timedelta(days=1))
    change(table, ("UNIQUE#Coupon#email#c@example.org", "#CLAIM"), expiresAt=None)


def essay() -> Essay:
    """An object from which three others follow."""
    return Essay.objects.create(essay_id="e", title="War and Peace")


def missing_word(table: Table) -> None:
    """Remove a derived item."""
    essay()
    remove(table, ("ESSAY#e", "WORD#and"))


def other_word(table: Table) -> None:
    """Change a derived item."""
    essay()
    item = get(table, ("ESSAY#e", "WORD#and"))
    put(table, {**item, "place": {"N": "7"}})


def word_too_many(table: Table) -> None:
    """Add a wrong derived item."""
    essay()
    EssayWord(essay_id="e", word="more", place=9).save()


def word_of_nothing(table: Table) -> None:
    """Leave a derived item of a deleted object."""
    EssayWord(essay_id="gone", word="more", place=9).save()


def word_of_deleted(table: Table) -> None:
    """Leave a derived item of an object in the trash."""
    essay().delete()
    EssayWord(essay_id="e", word="War", place=0).save()


REPAIRABLE: list[tuple[Callable[[Table], None], list[str]]] = [
    (orphan_without_owner, ["orphan claim"]),
    (orphan_of_another_value, ["orphan claim"]),
    (orphan_of_a_deleted_owner, ["orphan claim"]),
    (orphan_of_nobody, ["orphan claim"]),
    (missing_claim, ["missing claim"]),
    (claim_of_nobody, ["claim of another", "orphan claim"]),
    (claim_of_somebody_gone, ["claim of another", "orphan claim"]),
    (claim_of_who_has_another, ["claim of another", "orphan claim"]),
    (missing_partition, ["half index key"]),
    (missing_sort, ["half index key"]),
    (outdated_key, ["index key"]),
    (missing_key, ["index key"]),
    (foreign_key, ["index key"]),
    (live_key, ["live key in the trash"]),
    (folded_copy, ["canonical copy"]),
    (missing_copy, ["canonical copy"]),
    (copy_of_nothing, ["canonical copy"]),
    (lasting_claim, ["claim's expiry"]),
    (missing_word, ["missing derived item"]),
    (other_word, ["derived item"]),
    (word_too_many, ["derived item left over"]),
    (word_of_nothing, ["derived item left over"]),
    (word_of_deleted, ["derived item left over"]),
]


@pytest.mark.parametrize(("spoil", "kinds"), REPAIRABLE)
def test_what_does_not_fit_is_found_and_repaired(
    table: Table, spoil: Callable[[Table], None], kinds: list[str]
) -> None:
    """Each finding names its kind; after the repairs there is none, and the objects are as they were."""
    members(table)
    spoil(table)
    assert sorted(finding.kind for finding in verify()) == sorted(kinds)
    before = attributes(table)
    for finding in verify():
        assert repair(finding), finding
    assert_consistent()
    assert attributes(table) == before


def attributes(table: Table) -> list[tuple[Any, ...]]:
    """Return the stored names of the members."""
    found = table.send(Request("Scan", {}))["Items"]
    return sorted(
        (each["member_id"]["S"], each["email"]["S"], each["name"]["S"])
        for each in found
        if each["itemType"] == {"S": "Member"}
    )


def duplicate(table: Table) -> None:
    """Give two objects one value, written without claims."""
    change(table, M2, email="A@example.org", gs1sk="a@example.org")
    remove(table, OTHER_EMAIL)


def other_primary_key(table: Table) -> None:
    """An item under a key that its attributes do not give."""
    put(table, {**get(table, M1), "pk": {"S": "MEMBER#mx"}, "email": {"S": ""}, "gs1sk": {"S": "x"}})


def unknown_type(table: Table) -> None:
    """Store an item of a model that is not installed."""
    put(table, {**item_key(("OLD#1", "#METADATA")), "itemType": {"S": "Old"}})


def no_type(table: Table) -> None:
    """An item of no type."""
    put(table, item_key(("OLD#1", "#METADATA")))


def unreadable(table: Table) -> None:
    """Give an attribute a wrong type; the item's claims and words are kept."""
    put(table, {**get(table, M1), "email": {"N": "7"}})


def unreadable_source(table: Table) -> None:
    """Make a source unreadable: its derived items do not count as leftovers."""
    essay()
    put(table, {**get(table, ("ESSAY#e", "#METADATA")), "title": {"N": "7"}})


UNDECIDED: list[tuple[Callable[[Table], None], list[str], str]] = [
    (duplicate, ["value held twice"], "MEMBER#m1 / #METADATA also has email 'A@example.org', and owns the claim"),
    (other_primary_key, ["unreadable item"], "email is empty, and the key listed on gs1 needs it"),
    (unknown_type, ["unknown item"], "Its itemType 'Old' does not belong to an installed model"),
    (no_type, ["unknown item"], "Its itemType None does not belong to an installed model"),
    (unreadable, ["orphan claim", "unreadable item"], "email as N"),
    (unreadable_source, ["unreadable item"], "title as N"),
]


@pytest.mark.parametrize(("spoil", "kinds", "text"), UNDECIDED)
def test_what_somebody_has_to_decide_has_no_repair(
    table: Table, spoil: Callable[[Table], None], kinds: list[str], text: str
) -> None:
    """The finding is reported, but the item is kept."""
    members(table)
    spoil(table)
    found = sorted(verify(), key=lambda finding: finding.kind)
    assert [finding.kind for finding in found] == kinds
    assert any(text in str(finding) for finding in found)
    assert [repair(finding) for finding in found] == [False] * len(found)


def test_a_primary_key_that_the_attributes_do_not_give(table: Table) -> None:
    """The report contains the key of the attributes."""
    Seat.objects.create(seat_id="1", hall="A")
    put(table, {**get(table, ("SEAT#1", "#METADATA")), "pk": {"S": "SEAT#x"}})
    (finding,) = verify()
    assert str(finding) == "primary key: SEAT#x / #METADATA: Its attributes give SEAT#1 / #METADATA."
    assert finding.repair == ()


def test_a_healthy_table_has_no_findings(table: Table) -> None:
    """Objects of many models, live, deleted and expired, fit together."""
    members(table)
    Member.objects.get(pk="m2").delete()
    essay()
    Seat.objects.create(seat_id="1", hall="A", row=1, guest="Anna", status="taken", code="x")
    Sample.objects.create(sample_id="1", words={"a", "b"}, numbers={1}, data={"a": [1]})
    Product.objects.create(data={"a": 1}).delete()
    Order.objects.create(customer="c", number=1, placed_at=timezone.now(), coupon="x")
    Entry.objects.create(shelf="s", slot=1, title="t", score=2)
    Coupon.objects.create(code="c", email="c@example.org", expires_at=timezone.now() - timedelta(days=1))
    Ticket.objects.create(code="t", expires_at=timezone.now() + timedelta(days=1))
    firm = Firm.objects.create(firm_id="f#1", name="F", stock="F")
    Employee.objects.create(firm=firm, employee_id="1")
    Site.objects.create(firm=firm, site_id="1")
    board = Board.objects.create(name="B")
    Card.objects.create(board=board, card_id="1", status="closed")
    Task.objects.create(board=board, number=-1)
    Label.objects.create(board=board, label_id="1", text="x y")
    Note.objects.create(board=board)
    Note.objects.create()
    Resident.objects.create(last_name="\u00c9mile", nickname="Em").delete()
    group = Group.objects.create(name="editors")
    user = User.objects.create_user("anna", "anna@example.org", "secret")
    user.groups.add(group)
    session = SessionStore()
    session["a"] = 1
    session.save()
    DynamoCache("default", {}).set("a", "b")
    assert_consistent()


@pytest.mark.parametrize("key", [("USER#u", "#GROUP#gone"), ("USER#u", "EMAIL#old@example.org")])
def test_logins_and_memberships_follow_from_users(table: Table, key: tuple[str, str]) -> None:
    """A derived item that does not match its user is a leftover."""
    User.objects.create_user("anna", "anna@example.org", "secret", user_id="u")
    kind, _, value = key[1].strip("#").partition("#")
    own = {"userId": {"S": "u"}}
    if kind == "GROUP":
        own |= {"itemType": {"S": "Membership"}, "groupId": {"S": value}}
        own |= {"gs1pk": {"S": f"GROUP#{value}"}, "gs1sk": {"S": "USER#u"}}
    else:
        own |= {"itemType": {"S": "Login"}, "kind": {"S": kind}, "identifier": {"S": value}}
        own |= {"gs1pk": {"S": f"{kind}#{value}"}, "gs1sk": {"S": "USER#u"}}
    put(table, {**item_key(key), **own})
    (finding,) = verify()
    assert (finding.kind, finding.key) == ("derived item left over", key)
    assert repair(finding)
    assert_consistent()


@pytest.mark.parametrize("command", [("dynamo_verify", "--repair"), ("dynamo_rebuild",)])
def test_a_login_of_another_kind_is_left_alone(table: Table, command: tuple[str, ...]) -> None:
    """The login is not derived: the how-to creates it manually, and neither command deletes it."""
    user = User.objects.create_user("anna", "anna@example.org", "secret", user_id="u")
    user.logins.create(kind="BADGE", identifier="4711")
    assert_consistent()
    call_command(*command, stdout=io.StringIO())
    assert user.logins.filter(kind="BADGE").count() == 1


def test_a_user_with_a_login_of_another_kind_cannot_move(table: Table) -> None:
    """The login would stay without its user."""
    user = User.objects.create_user("anna", "anna@example.org", "secret", user_id="u")
    user.logins.create(kind="BADGE", identifier="4711")
    with pytest.raises(NotSupported, match=r"accounts.Login objects refer to it by user"):
        user.move(user_id="v")
    user.logins.get(kind="BADGE").delete()
    user.move(user_id="v")
    assert_consistent()


# reading


def test_what_a_healthy_table_costs(table: Table, sent: list[SentRequest]) -> None:
    """The check takes a Scan, and one BatchGetItem per hundred related items.

    Before that, one GetItem reads the state of models with shards, some of which are here.
    """
    members(table)
    sent.clear()
    assert list(verify()) == []
    assert [request.operation for request in sent] == ["GetItem", "Scan", "BatchGetItem"]
    assert all(request.consumed > 0 for request in sent)
    assert sent[1].params["ConsistentRead"]


def test_a_suspicion_is_looked_at_as_of_one_moment(table: Table, sent: list[SentRequest]) -> None:
    """A fault that is corrected between two requests is not reported."""
    members(table)
    claim = get(table, EMAIL)
    remove(table, EMAIL)
    sent.clear()

    def set_right(operation: str, params: Any) -> None:
        if operation == "TransactGetItems":
            put(table, claim)

    with intercept(set_right):
        assert list(verify()) == []
    operations = [request.operation for request in sent]
    assert operations == ["GetItem", "Scan", "BatchGetItem", "PutItem", "TransactGetItems"]


def test_pages_are_read_one_by_one(table: Table, sent: list[SentRequest]) -> None:
    """The checker reports its progress after each page, without keeping results."""
    for number in range(3):
        Seat.objects.create(seat_id=str(number), hall="A", code="x" * 100 + str(number), status="y" * 390_000)
    sent.clear()
    told: list[int] = []
    assert list(verify(progress=told.append)) == []
    assert [request.operation for request in sent].count("Scan") == len(told) >= 2
    assert told[-1] == 6


def test_one_model_only(table: Table) -> None:
    """Items and claims of other models are skipped."""
    members(table)
    orphan_of_another_value(table)
    essay()
    remove(table, ("ESSAY#e", "WORD#and"))
    assert [finding.kind for finding in verify(model=Member)] == ["orphan claim"]
    assert [finding.kind for finding in verify(model=Essay)] == ["missing derived item"]


def test_not_within_a_block() -> None:
    """A block's writes are not stored yet."""
    with transactions.atomic(), pytest.raises(NotSupported, match="Call it after"):
        list(verify())


def test_checks_that_need_requests_of_their_own(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run for each item of a model."""
    essay()

    def inquiry(asked: Table, subject: Any) -> Any:
        yield Finding("counter", subject.key, sentence("Counted."))

    monkeypatch.setattr(walk, "INQUIRIES", [inquiry])
    assert [finding.kind for finding in verify()] == ["counter"] * 4


# repairing


def rename(table: Table) -> None:
    """The owner takes another value."""
    member = Member.objects.get(pk="m1")
    member.email = "c@example.org"
    member.save()


def take(table: Table) -> None:
    """Another object takes the value."""
    Member.objects.create(member_id="m3", email="a@example.org")


@pytest.mark.parametrize(
    ("spoil", "meanwhile"),
    [
        (missing_claim, rename),
        (missing_claim, take),
        (claim_of_somebody_gone, lambda table: change(table, EMAIL, ownerPk="MEMBER#m2")),
        (outdated_key, rename),
        (live_key, lambda table: Member.deleted_objects.allow_scan().get(pk="m1").restore()),
    ],
)
def test_a_repair_undoes_nothing_newer(table: Table, spoil: Any, meanwhile: Any) -> None:
    """Later writes are kept, and the repair reports that it did nothing."""
    members(table)
    spoil(table)
    finding = next(verify())
    meanwhile(table)
    before = table.send(Request("Scan", {}))["Items"]
    assert not repair(finding)
    assert table.send(Request("Scan", {}))["Items"] == before


def test_an_orphan_that_is_taken_again_stays(table: Table) -> None:
    """The claim is the same to the letter; what its owner has decides."""
    members(table)
    orphan_of_another_value(table)
    (finding,) = verify()
    rename(table)
    assert not repair(finding)
    assert_consistent()


def test_a_rule_for_items_that_are_there_already(table: Table) -> None:
    """Claims that are missing because of a new rule are created; the first of two objects with one value gets it."""
    for number, guest in enumerate(("Anna", "Bert", "anna")):
        Seat.objects.create(seat_id=str(number), hall="A", guest=guest, status="free")
        change(table, (f"SEAT#{number}", "#METADATA"), status="taken")
    assert [finding.kind for finding in verify()] == ["missing claim"] * 3
    assert sorted((finding.kind, repair(finding)) for finding in verify()) == [
        ("missing claim", True),
        ("missing claim", True),
        ("value held twice", False),
    ]


# the command


def run(*arguments: str) -> str:
    """Return the output of the command."""
    out = io.StringIO()
    call_command("dynamo_verify", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_the_command_says_that_all_is_well(table: Table) -> None:
    """The command prints one line, and exits with 0."""
    members(table)
    assert run() == "4 items read by 3 requests, 0 findings.\n"


def test_the_command_tells_and_repairs(table: Table) -> None:
    """Without ``--repair``, the command fails before any write; with it, it repairs as much as possible."""
    members(table)
    missing_claim(table)
    out = io.StringIO()
    with pytest.raises(CommandError) as raised:
        call_command("dynamo_verify", stdout=out)
    assert out.getvalue() == ("missing claim: MEMBER#m1 / #METADATA: It has no claim on email 'a@example.org'.\n")
    assert str(raised.value) == "3 items read by 4 requests, 1 findings. --repair repairs what can be."
    assert raised.value.returncode == 1
    assert run("--repair").splitlines() == [
        "missing claim: MEMBER#m1 / #METADATA: It has no claim on email 'a@example.org'. Repaired.",
        "3 items read by 4 requests, 1 findings, 1 repaired.",
    ]
    assert_consistent()


def test_the_command_fails_where_somebody_has_to_decide(table: Table) -> None:
    """A finding without a repair stays."""
    unknown_type(table)
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"1 findings, 0 repaired\.$"):
        call_command("dynamo_verify", "--repair", stdout=out)
    assert out.getvalue().endswith("This finding requires a decision.\n")


def test_the_command_for_one_model(table: Table) -> None:
    """``--model`` passes over the others, and names must be of this table."""
    unknown_type(table)
    assert run("--model", "catalog.Member", "--rate", "1000") == "1 items read by 1 requests, 0 findings.\n"
    with pytest.raises(CommandError, match=r"--model catalog\.Nothing: "):
        run("--model", "catalog.Nothing")
    with pytest.raises(CommandError, match="is not stored in the table of the alias 'default'"):
        run("--model", "contenttypes.ContentType")
    with pytest.raises(CommandError, match="--rate is a number"):
        run("--rate", "0")
