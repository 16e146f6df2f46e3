"""The effects of operations on items: pure functions of the snapshots before and after, executed twice."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from dynamo_single import models
from dynamo_single.evolution.backfill.attributes import (
    convert_attribute,
    copy_value,
    drop_attribute,
    fill_attribute,
)
from dynamo_single.evolution.backfill.claims import (
    delete_unused_claims,
    move_items,
    release_claims,
    rename_parent_marks,
    take_claims,
)
from dynamo_single.evolution.backfill.project_functions import change_items
from dynamo_single.evolution.backfill.rewrite import rewrite_index_keys
from dynamo_single.evolution.backfill.work import digest_of
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.effects.unique_claims import claim_item, claims_of
from dynamo_single.orm.items.encode import attributes_item, item_from
from dynamo_single.orm.items.readers import absent_value
from dynamo_single.orm.schema import registry
from tests.unit.declaring import declare, forgotten
from tests.unit.item_migrations.store import Store
from tests.unit.item_migrations.test_snapshots import MODELS, SNAPSHOTS, objects

Item = dict[str, Any]


def snapshot(
    keys: Mapping[str, Any] | None = None,
    *,
    primary: tuple[str, str] = ("LAMP#{lamp_id}", "#METADATA"),
    item_type: str = "Lamp",
    **attributes: Any,
) -> Snapshot:
    """Return the snapshot of lamps with these attributes in addition to identifier and name."""
    with forgotten():
        own = {"lamp_id": models.IdAttribute(), "name": models.UnicodeAttribute(), **attributes}
        options = {"item_type": item_type}
        made = declare("Lamp", primary, dict(keys or {}), bases=(models.SoftDeleteModel,), options=options, **own)
        return Snapshot.of(made)


def lamp(lamp_id: str = "1", /, **stored: Any) -> Item:
    """A stored lamp, in the trash or live."""
    own = {"lamp_id": {"S": lamp_id}, "name": {"S": "Anna"}, **stored}
    return {"pk": {"S": f"LAMP#{lamp_id}"}, "sk": {"S": "#METADATA"}, "itemType": {"S": "Lamp"}, **own}


def claim(owner: Item, *parts: str, kind: str = "Lamp", sort: str = "#CLAIM") -> Item:
    """A claim of a lamp."""
    return claim_item((f"UNIQUE#{kind}#{'#'.join(parts)}", sort), owner)


DELETED = {"deletedAt": {"N": "1735689600000"}}
BY_NAME = {"by_name": models.IndexKey("gs2", "LAMPS", "{name}")}


@given(objects())
def test_the_keys_of_an_item_are_those_that_the_model_writes(given: tuple[str, dict[str, Any]]) -> None:
    """Afterwards, an item has the keys of its attributes, or fails if the model would reject it."""
    label, values = given
    model, after = MODELS[label], SNAPSHOTS[label]
    indexes = {"gs1", "gs2", "gs3"}
    junk = {f"{index}{half}": {"S": "junk"} for index in indexes for half in ("pk", "sk")}
    bare = {
        "pk": {"S": "p"}, "sk": {"S": "s"}, "itemType": {"S": after.item_type}, **attributes_item(model, values),
    }  # fmt: skip
    store = Store({**bare, **junk})
    failed = store.done(rewrite_index_keys(after, indexes))
    # A missing value is read as the default.
    known = registry.attributes_of(model)
    read = {name: absent_value(known[name]) if value is None else value for name, value in values.items()}
    try:
        wanted = item_from(model, read)
    except InvalidValue:
        return  # the primary key may be invalid
    assert not failed
    (found,) = store.items.values()
    assert found == {**bare, **{name: value for name, value in wanted.items() if name in junk}}


def test_an_item_in_the_trash_keeps_the_trashs_key() -> None:
    """The item does not get a live key, and a live item does not get a key of the trash."""
    after = snapshot(BY_NAME)
    deleted = lamp(gs2pk={"S": "TRASH#Lamp"}, gs2sk={"S": "2025-01-01T00:00:00.000Z#1"}, **DELETED)
    store = Store(deleted, lamp("2", gs2pk={"S": "TRASH#Lamp"}, gs2sk={"S": "x"}))
    assert store.done(rewrite_index_keys(after, ["gs2"])) == {}
    assert [*store.items.values()] == [deleted, lamp("2", gs2pk={"S": "LAMPS"}, gs2sk={"S": "Anna"})]


def test_a_key_that_is_removed_leaves_the_index_to_others() -> None:
    """Only the named index is affected."""
    store = Store(lamp(gs2pk={"S": "LAMPS"}, gs2sk={"S": "Anna"}, gs3pk={"S": "other"}))
    store.done(rewrite_index_keys(snapshot(), ["gs2"]))
    assert [*store.items.values()] == [lamp(gs3pk={"S": "other"})]


def test_items_of_other_models_are_not_touched() -> None:
    """They are not even inspected."""
    other = {**lamp("1", gs2pk={"S": "x"}), "itemType": {"S": "Other"}}
    store = Store(other)
    store.done(rewrite_index_keys(snapshot(BY_NAME), ["gs2"]))
    assert [*store.items.values()] == [other]


@given(objects())
def test_the_claims_of_an_item_are_those_that_the_model_takes(given: tuple[str, dict[str, Any]]) -> None:
    """All of them, with the owner's key."""
    label, values = given
    model, after = MODELS[label], SNAPSHOTS[label]
    item = {"pk": {"S": "p"}, "sk": {"S": "s"}, "itemType": {"S": after.item_type}, **attributes_item(model, values)}
    if "expiresAt" in item:
        return  # whether it has expired is another test's matter
    store = Store(item)
    try:
        wanted = {key: claim_item(key, item) for key in claims_of(model, item)}
    except InvalidValue:
        assert store.done(take_claims(after, after.unique))
        return
    assert store.done(take_claims(after, after.unique)) == {}
    assert store.items == {("p", "s"): item, **wanted}


def test_a_value_that_two_items_have_is_named_with_both() -> None:
    """The first one keeps its claim."""
    after = snapshot(email=models.EmailAttribute(null=True, unique=True))
    one, two = (lamp(name, email={"S": "a@b.c"}) for name in "12")
    store = Store(one, two)
    failed = store.done(take_claims(after, after.unique))
    assert failed == {
        ("LAMP#2", "#METADATA"): "UNIQUE#Lamp#email#a@b.c is held by LAMP#1 / #METADATA: both have the value. Change "
        "one of them, or delete it."
    }
    assert store.items[("UNIQUE#Lamp#email#a@b.c", "#CLAIM")] == claim(one, "email", "a@b.c")


@pytest.mark.parametrize(
    ("more", "takes"),
    [(DELETED, False), ({"expiresAt": {"N": "1"}}, False), ({"expiresAt": {"N": "99999999999"}}, True)],
)
def test_what_is_not_live_holds_no_claim(more: Item, takes: bool) -> None:
    """This applies to the trash and to expired objects; a claim expires with its owner."""
    after = snapshot(email=models.EmailAttribute(null=True, unique=True), ends=models.TTLAttribute(null=True))
    item = lamp(email={"S": "a@b.c"}, **more)
    store = Store(item)
    store.done(take_claims(after, after.unique))
    assert [*store.items.values()] == [item, *([claim(item, "email", "a@b.c")] if takes else [])]


def test_a_claim_that_has_expired_is_free() -> None:
    """Another object can take its value."""
    after = snapshot(email=models.EmailAttribute(null=True, unique=True), ends=models.TTLAttribute(null=True))
    gone = lamp("1", email={"S": "a@b.c"}, expiresAt={"N": "1"})
    item = lamp("2", email={"S": "a@b.c"})
    store = Store(item, claim(gone, "email", "a@b.c"))
    assert store.done(take_claims(after, after.unique)) == {}
    assert store.items[("UNIQUE#Lamp#email#a@b.c", "#CLAIM")] == claim(item, "email", "a@b.c")


def test_the_claims_of_a_rule_are_released_and_no_others() -> None:
    """Unneeded claims of the rule go too; claims of more attributes, constraints and other models stay."""
    before = snapshot(email=models.EmailAttribute(null=True, unique=True))
    item = lamp(email={"S": "a@b.c"})
    others = [
        claim(item, "email", "name", "a", "b"),
        claim(item, "email", "a@b.c", sort="#CLAIM#constraint"),
        claim(item, "emails", "a@b.c"),
        claim(item, "email", "a@b.c", kind="Lamps"),
    ]
    store = Store(item, claim(item, "email", "a@b.c"), claim(lamp("9"), "email", "gone"), *others)
    assert store.done(release_claims(before, snapshot(), before.unique[0])) == {}
    assert [*store.items.values()] == [item, *others]


def test_claims_of_a_rule_that_only_changes_its_form() -> None:
    """An item keeps its claims by the new rule, in either order of the operations."""
    before = snapshot(email=models.EmailAttribute(null=True, unique=True))
    after = snapshot(email=models.EmailAttribute(null=True, unique=True, canonical=True))
    items = [lamp("1", email={"S": "A@b.c"}), lamp("2", email={"S": "d@e.f"})]
    store = Store(*items, claim(items[0], "email", "A@b.c"), claim(items[1], "email", "d@e.f"))
    store.done(take_claims(after, after.unique))
    store.done(release_claims(before, after, before.unique[0]))
    store.done(take_claims(after, after.unique))
    assert {key for key, _ in store.items if key.startswith("U")} == {
        "UNIQUE#Lamp#email#a@b.c",
        "UNIQUE#Lamp#email#d@e.f",
    }


def test_claims_that_nobody_needs_are_deleted() -> None:
    """Their owner is missing, in the trash, or has another value; the others stay."""
    now = snapshot(email=models.EmailAttribute(null=True, unique=True))
    live, other = lamp("1", email={"S": "a"}), lamp("2", email={"S": "b"})
    deleted = lamp("3", email={"S": "c"}, **DELETED)
    needed = claim(live, "email", "a")
    needless = [claim(other, "email", "x"), claim(deleted, "email", "c"), claim(lamp("9"), "email", "d")]
    store = Store(live, other, deleted, needed, *needless)
    assert store.done(delete_unused_claims(now, now.unique[0])) == {}
    assert [*store.items.values()] == [live, other, deleted, needed]


def test_a_default_is_written_where_a_value_is_missing() -> None:
    """A constant, or what a function makes of the item's other values."""
    after = snapshot(watts=models.IntegerAttribute(default=40))
    store = Store(lamp("1"), lamp("2", watts={"N": "7"}), lamp("3", **DELETED))
    store.done(fill_attribute(after, "watts", lambda values: len(values["name"])))
    assert [item["watts"] for item in store.items.values()] == [{"N": "4"}, {"N": "7"}, {"N": "4"}]


def test_a_folded_copy_follows_its_source() -> None:
    """Missing and outdated copies are written."""
    after = snapshot(folded=models.CanonicalAttribute(source="name"))
    store = Store(lamp("1"), lamp("2", folded={"S": "old"}), lamp("3", folded={"S": "anna"}))
    store.done(fill_attribute(after, "folded"))
    assert {item["folded"]["S"] for item in store.items.values()} == {"anna"}


def test_a_function_that_fails_is_a_failure_of_the_item() -> None:
    """The failure contains the raised error."""

    def broken(values: Any) -> Any:
        raise KeyError("size")

    store = Store(lamp())
    failed = store.done(fill_attribute(snapshot(watts=models.IntegerAttribute(default=1)), "watts", broken))
    assert failed == {("LAMP#1", "#METADATA"): "broken() raised KeyError: 'size'"}


def renamed(**options: Any) -> tuple[Snapshot, Snapshot]:
    """Return lamps whose color is now stored as ``tint``."""
    before = snapshot(BY_COLOUR, colour=models.UnicodeAttribute(null=True, **options))
    keys = {"by_colour": models.IndexKey("gs2", "COLOUR#{tint}", "{lamp_id}")}
    return before, snapshot(keys, tint=models.UnicodeAttribute(null=True, **options))


BY_COLOUR = {"by_colour": models.IndexKey("gs2", "COLOUR#{colour}", "{lamp_id}")}


def test_a_rename_copies_and_then_drops() -> None:
    """The old value counts while old code writes it, and its absence too; the keys that name it stay as they are."""
    before, after = renamed()
    pair = {"gs2pk": {"S": "COLOUR#red"}, "gs2sk": {"S": "1"}}
    red, old = {"S": "red"}, {"S": "old"}
    store = Store(lamp("1", colour=red, **pair), lamp("2", colour=red, tint=old), lamp("3", tint=old))
    store.done(copy_value(before, after, "colour", "tint"))
    assert [*store.items.values()] == [
        lamp("1", colour=red, tint=red, **pair), lamp("2", colour=red, tint=red), lamp("3")
    ]  # fmt: skip
    store.done(drop_attribute(before, after, "colour"))
    assert [*store.items.values()] == [lamp("1", tint=red, **pair), lamp("2", tint=red), lamp("3")]


def test_a_rename_of_what_is_unique_takes_claims_before_it_releases_any() -> None:
    """Old code relies on the old ones, and new code on the new ones."""
    before, after = renamed(unique=True)
    item = lamp("1", colour={"S": "red"})
    store = Store(item, claim(item, "colour", "red"))
    store.done(copy_value(before, after, "colour", "tint"))
    assert {pk for pk, _ in store.items if pk[0] == "U"} == {"UNIQUE#Lamp#colour#red", "UNIQUE#Lamp#tint#red"}
    store.items[("LAMP#1", "#METADATA")]["colour"] = {"S": "blue"}  # old code, which moves its own claim
    del store.items[("UNIQUE#Lamp#colour#red", "#CLAIM")]
    store.put(claim(item, "colour", "blue"))
    store.done(copy_value(before, after, "colour", "tint"))
    assert {pk for pk, _ in store.items if pk[0] == "U"} == {"UNIQUE#Lamp#colour#blue", "UNIQUE#Lamp#tint#blue"}
    store.done(drop_attribute(before, after, "colour"))
    assert store.items == {
        ("LAMP#1", "#METADATA"): lamp("1", tint={"S": "blue"}),
        ("UNIQUE#Lamp#tint#blue", "#CLAIM"): claim(item, "tint", "blue"),
    }


def test_a_rename_with_another_form() -> None:
    """The function gets the Python value, and its result is stored in the new form."""
    before, after = (
        snapshot(price=models.IntegerAttribute(null=True)),
        snapshot(cents=models.IntegerAttribute(null=True)),
    )
    store = Store(lamp(price={"N": "3"}))
    store.done(copy_value(before, after, "price", "cents", lambda value: 100 * value))
    assert [*store.items.values()] == [lamp(price={"N": "3"}, cents={"N": "300"})]


def test_a_value_in_another_form_takes_its_keys_and_claims_along() -> None:
    """All in one write, and an item that is of the new form already is let be."""
    keys = {"by_size": models.IndexKey("gs2", "SIZE", "{size}")}
    before = snapshot(keys, size=models.UnicodeAttribute(unique=True))
    after = snapshot(keys, size=models.IntegerAttribute(unique=True))
    item = lamp("1", size={"S": "12"}, gs2pk={"S": "SIZE"}, gs2sk={"S": "12"})
    done = lamp("2", size={"N": "5"}, gs2pk={"S": "SIZE"}, gs2sk={"S": "p5005"})
    store = Store(item, done, claim(item, "size", "12"), claim(done, "size", "p5005"))
    assert store.done(convert_attribute(before, after, "size", int)) == {}
    assert store.items == {
        ("LAMP#1", "#METADATA"): {**lamp("1", size={"N": "12"}), "gs2pk": {"S": "SIZE"}, "gs2sk": {"S": "p50112"}},
        ("LAMP#2", "#METADATA"): done,
        ("UNIQUE#Lamp#size#p5005", "#CLAIM"): claim(done, "size", "p5005"),
        ("UNIQUE#Lamp#size#p50112", "#CLAIM"): claim(item, "size", "p50112"),
    }


def test_a_value_that_would_be_converted_twice_is_refused() -> None:
    """After an interruption, converted and unconverted items would look the same."""
    before, after = snapshot(price=models.IntegerAttribute()), snapshot(price=models.DecimalAttribute())
    store = Store(lamp(price={"N": "3"}))
    failed = store.done(convert_attribute(before, after, "price", lambda value: Decimal(value) * 100))
    assert "Store the attribute under another name" in failed["LAMP#1", "#METADATA"]
    assert [*store.items.values()] == [lamp(price={"N": "3"})]


def test_a_value_that_cannot_be_converted_is_named() -> None:
    """The failure contains the raised error, or the value that fits neither form."""
    before, after = snapshot(size=models.UnicodeAttribute()), snapshot(size=models.IntegerAttribute())
    store = Store(lamp("1", size={"S": "large"}), lamp("2", size={"B": b"x"}))
    failed = store.done(convert_attribute(before, after, "size", int))
    assert failed["LAMP#1", "#METADATA"].startswith("int() raised ValueError")
    assert len(failed) == 2


@pytest.mark.parametrize("name", ["lamp_id", "other"])
def test_what_cannot_be_converted_in_its_place(name: str) -> None:
    """This applies to parts of the primary key, and to values with a new stored name."""
    before = snapshot(other=models.UnicodeAttribute(attr_name="a"))
    after = snapshot(other=models.UnicodeAttribute(attr_name="b"))
    with pytest.raises(ConfigurationError, match=r"primary key|physical name"):
        convert_attribute(before, after, name)


def test_dropping_leaves_what_is_stored_under_another_python_name() -> None:
    """An attribute that only Python calls otherwise keeps its value."""
    before = snapshot(colour=models.UnicodeAttribute(attr_name="c"))
    after = snapshot(tint=models.UnicodeAttribute(attr_name="c"))
    store = Store(lamp(c={"S": "red"}))
    store.done(drop_attribute(before, after, "colour"))
    assert [*store.items.values()] == [lamp(c={"S": "red"})]


def test_a_function_changes_values_with_all_that_follows() -> None:
    """Keys, folded copies and claims match the new values."""
    now = snapshot(
        BY_NAME, folded=models.CanonicalAttribute(source="name"), mail=models.EmailAttribute(null=True, unique=True)
    )
    item = lamp("1", folded={"S": "anna"}, mail={"S": "a@b.c"}, gs2pk={"S": "LAMPS"}, gs2sk={"S": "Anna"})
    store = Store(item, claim(item, "mail", "a@b.c"))

    def louder(values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return None if values["name"].isupper() else {"name": values["name"].upper(), "mail": f"x{values['mail']}"}

    assert store.done(change_items(now, louder)) == {}
    assert store.items == {
        ("LAMP#1", "#METADATA"): {**item, "name": {"S": "ANNA"}, "mail": {"S": "xa@b.c"}, "gs2sk": {"S": "ANNA"}},
        ("UNIQUE#Lamp#mail#xa@b.c", "#CLAIM"): claim(item, "mail", "xa@b.c"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 1}, "There is no attribute size"),
        ({"lamp_id": "2"}, "lamp_id cannot be changed"),
        ({"deleted_at": None, "folded": "x"}, "folded cannot be changed"),
        ({"name": None}, "name has to have a value"),
    ],
)
def test_what_a_function_cannot_change(given: Mapping[str, Any], message: str) -> None:
    """The item fails before any write."""
    store = Store(lamp("1", folded={"S": "anna"}))
    failed = store.done(change_items(snapshot(folded=models.CanonicalAttribute(source="name")), lambda values: given))
    assert message in failed["LAMP#1", "#METADATA"]


def test_a_function_that_never_ends_is_refused() -> None:
    """After an interruption it would change an item twice."""
    store = Store(lamp())
    failed = store.done(change_items(snapshot(), lambda values: {"name": values["name"] + "!"}))
    assert "changes its own result again" in failed["LAMP#1", "#METADATA"]


def test_a_move_takes_claims_and_keys_along() -> None:
    """To another primary key and another type at once; what is in the trash moves too, without claims."""
    before = snapshot(BY_NAME, email=models.EmailAttribute(null=True, unique=True))
    after = snapshot(
        BY_NAME, primary=("NEW#{lamp_id}", "#"), item_type="Light", email=models.EmailAttribute(null=True, unique=True)
    )
    item = lamp("1", email={"S": "a"}, gs2pk={"S": "LAMPS"}, gs2sk={"S": "Anna"}, extra={"S": "kept"})
    deleted = lamp("2", gs2pk={"S": "TRASH#Lamp"}, gs2sk={"S": "2025-01-01T00:00:00.000Z#2"}, **DELETED)
    store = Store(item, deleted, claim(item, "email", "a"))
    assert store.done(move_items(before, after)) == {}
    moved = {**item, "pk": {"S": "NEW#1"}, "sk": {"S": "#"}, "itemType": {"S": "Light"}}
    key = {"pk": {"S": "NEW#2"}, "sk": {"S": "#"}}
    assert store.items == {
        ("NEW#1", "#"): moved,
        ("NEW#2", "#"): {**deleted, **key, "itemType": {"S": "Light"}, "gs2pk": {"S": "TRASH#Light"}},
        ("UNIQUE#Light#email#a", "#CLAIM"): claim(moved, "email", "a", kind="Light"),
    }  # fmt: skip


def test_a_move_within_one_type_keeps_the_claim_for_the_new_key() -> None:
    """The claim is transferred, so no other object can take it in between."""
    before = snapshot(email=models.EmailAttribute(null=True, unique=True))
    after = snapshot(primary=("NEW#{lamp_id}", "#"), email=models.EmailAttribute(null=True, unique=True))
    item = lamp("1", email={"S": "a"})
    store = Store(item, claim(item, "email", "a"))
    assert store.done(move_items(before, after)) == {}
    moved = {**item, "pk": {"S": "NEW#1"}, "sk": {"S": "#"}}
    assert store.items == {("NEW#1", "#"): moved, ("UNIQUE#Lamp#email#a", "#CLAIM"): claim(moved, "email", "a")}


def test_a_place_that_is_taken_is_named() -> None:
    """The item stays where it is."""
    before, after = snapshot(), snapshot(primary=("ONE#{name}", "#"))
    store = Store(lamp("1"), lamp("2"))
    failed = store.do(move_items(before, after))
    assert failed == {
        ("LAMP#2", "#METADATA"): "Its new key ONE#Anna / # is another item's. Change one of them, or delete it."
    }
    assert {*store.items} == {("ONE#Anna", "#"), ("LAMP#2", "#METADATA")}


def test_what_went_along_with_a_parent_names_its_new_type() -> None:
    """A restoration then includes it."""
    store = Store(lamp("1", deletedWith={"S": "Lamp#1"}), lamp("2", deletedWith={"S": "Lampion#1"}))
    store.done(rename_parent_marks("Lamp", "Light"))
    assert [item["deletedWith"]["S"] for item in store.items.values()] == ["Light#1", "Lampion#1"]


def test_other_work_has_another_mark() -> None:
    """A key that was edited after an interruption starts again; the same key continues, in any process."""
    texts = ["{name}", "{lamp_id}"]
    marks = [digest_of("lamp", snapshot(), snapshot({"key": models.IndexKey("gs2", "LAMPS", text)})) for text in texts]
    assert len({*marks}) == 2
    assert marks[0] == digest_of("lamp", snapshot(), snapshot({"key": models.IndexKey("gs2", "LAMPS", "{name}")}))
    assert "0x" not in repr(snapshot(BY_NAME, email=models.EmailAttribute(null=True, unique=True)))
