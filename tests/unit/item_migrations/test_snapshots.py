"""A snapshot has the same values, keys and claims as the model, and survives a migration file."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from django.db.migrations.writer import MigrationWriter
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dynamo_single import models
from dynamo_single.evolution.backfill.claims import move_items
from dynamo_single.evolution.snapshots import Snapshot, with_attribute_renamed
from dynamo_single.exceptions import ConfigurationError, EmptyKeyPart, InvalidValue
from dynamo_single.orm.effects.unique_claims import claims_of
from dynamo_single.orm.items.decode import values_of
from dynamo_single.orm.items.encode import attributes_item, computed_key, key_attributes
from dynamo_single.orm.items.unique_rules import rules_of
from dynamo_single.orm.requests.actions import ItemKey
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fingerprints import attribute_fingerprint, form_of, key_fingerprints
from dynamo_single.orm.schema.keys.shards import Entry, Schedule
from tests.catalog.models import Coupon, Member, Sample
from tests.catalog.seats import Seat
from tests.catalog.service import Visit
from tests.unit.declaring import declare, forgotten
from tests.unit.factories import in_tens

MODELS = {model._meta.label: model for model in registry.all_models()}
SNAPSHOTS = {label: Snapshot.of(model) for label, model in MODELS.items()}
BY_KIND: dict[Any, Any] = {
    "text": st.text(alphabet="aA#$ \u00e9", max_size=3),
    "number": st.integers(-999, 999),
    "boolean": st.booleans(),
    "date": st.dates(),
    "time": st.times(),
    "timestamp": st.datetimes(
        datetime.datetime(1980, 1, 1), datetime.datetime(2100, 1, 1), timezones=st.just(datetime.UTC)
    ),
    "duration": st.timedeltas(datetime.timedelta(0), datetime.timedelta(9)),
    "uuid": st.integers(0, 9).map(lambda number: UUID(int=number)),
}


@st.composite
def objects(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A model's label, and values of its attributes: what can be in a key, or nothing."""
    label = draw(st.sampled_from(sorted(label for label, model in MODELS.items() if not model._options.shards)))
    values: dict[str, Any] = {}
    for name, attribute in registry.attributes_of(MODELS[label]).items():
        chosen = BY_KIND.get(attribute.key_kind, st.none())
        values[name] = attribute.prepare(draw(chosen if name in MODELS[label]._identity else st.none() | chosen))
    return label, values


def outcome(function: Any, *arguments: Any) -> Any:
    """Return the result of a function, or that it raises an error."""
    try:
        return function(*arguments)
    except (InvalidValue, EmptyKeyPart) as error:
        return type(error)


def claims(found: Callable[[], dict[tuple[str, ...], ItemKey]]) -> dict[tuple[str, ...], ItemKey] | None:
    """Return the claims; none if a value cannot have one, such as a string with an empty folded form."""
    try:
        return found()
    except InvalidValue:
        return None


@given(objects())
def test_values_keys_and_claims_are_those_of_the_model(given: tuple[str, dict[str, Any]]) -> None:
    """This includes values that a key rejects."""
    label, values = given
    model, snapshot = MODELS[label], SNAPSHOTS[label]
    item = {"pk": {"S": "p"}, "sk": {"S": "s"}, **attributes_item(model, values)}
    assert snapshot.values_of(item) == values_of(model, item)
    assert outcome(snapshot.primary_key, values) == outcome(computed_key, model, values)
    assert outcome(snapshot.index_attributes, values) == outcome(key_attributes, model, values)
    ours = claims(lambda: {key: rule.attributes for key, rule in snapshot.claims(item).items()})
    assert ours == claims(lambda: {key: rule.fields for key, rule in claims_of(model, item).items()})


@pytest.mark.parametrize("labels", in_tens([*MODELS]), ids=lambda labels: labels[0])
def test_a_snapshot_survives_a_migration_file(labels: Sequence[str]) -> None:
    """Django's writer writes it, and the loaded snapshot is equal."""
    for label in labels:
        text, imports = MigrationWriter.serialize(SNAPSHOTS[label])
        known: dict[str, Any] = {}
        exec("\n".join(imports), known)  # noqa: S102 - what was just written
        assert eval(text, known) == SNAPSHOTS[label], label  # noqa: S307
        assert "dynamo_single.orm" not in text, label


@pytest.mark.parametrize("labels", in_tens([*MODELS]), ids=lambda labels: labels[0])
def test_fingerprints_are_those_of_the_model(labels: Sequence[str]) -> None:
    """This includes keys, attributes and rules."""
    for label in labels:
        model, snapshot = MODELS[label], SNAPSHOTS[label]
        keys = {name: snapshot.key_fingerprint(name) for name in snapshot.access_keys}
        layout = registry.layout_of(model)
        assert keys == key_fingerprints(layout), label
        found = {name: snapshot.attribute_fingerprint(name) for name in snapshot.attributes}
        attributes = registry.attributes_of(model).items()
        assert found == {name: attribute_fingerprint(each, layout) for name, each in attributes}, label
        rules = [rule.fingerprint for rule in rules_of(model)]
        assert [snapshot.claim_rule(each).fingerprint for each in snapshot.unique] == rules, label


def test_how_fingerprints_read() -> None:
    """The table contains them, so they are as stable as the stored layout."""
    member, coupon = SNAPSHOTS["catalog.Member"], SNAPSHOTS["catalog.Coupon"]
    assert member.key_fingerprint("trash") == "gs1 TRASH#Member {deletedAt:timestamp}#{member_id:text}"
    assert [member.claim_rule(each).fingerprint for each in member.unique] == ["email:text:canonical", "badge:number"]
    assert coupon.attribute_fingerprint("expires_at") == "expiresAt TTLAttribute"
    seat = SNAPSHOTS["catalog.Seat"]
    assert seat.claim_rule(seat.unique[1]).fingerprint.startswith("guest:")


@pytest.mark.parametrize(
    ("attribute", "path", "options"),
    [
        (models.EmailAttribute(), "UnicodeAttribute", {}),
        (models.IdAttribute(prefix="x"), "UnicodeAttribute", {}),
        (models.VersionAttribute(), "IntegerAttribute", {}),
        (models.TTLAttribute(), "TTLAttribute", {}),
        (models.ImageAttribute(), "FileAttribute", {}),
        (models.IPAddressAttribute(unpack_ipv4=True), "IPAddressAttribute", {"unpack_ipv4": True}),
    ],
)
def test_the_form_of_an_attribute_is_the_plainest_class(attribute: Any, path: str, options: dict[str, Any]) -> None:
    """A string that becomes an e-mail address is stored as before, without a migration."""
    assert form_of(attribute) == (path, options)


class Shouting(models.UnicodeAttribute):
    """A project's own, which stores another form."""

    def __init__(self, *arguments: Any, mark: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.mark = mark

    def encode(self, value: str) -> str:
        """The value with its mark."""
        return value + self.mark


class Noted(Shouting):
    """A custom attribute that describes its construction."""

    def stored_options(self) -> dict[str, Any]:
        """The mark."""
        return {"mark": self.mark}


def described(attribute: Any) -> Snapshot:
    """The snapshot of a model with this attribute."""
    with forgotten():
        return Snapshot.of(declare("Shout", ("SHOUT#{shout_id}", "#"), shout_id=models.IdAttribute(), word=attribute))


def test_an_attribute_of_a_project_is_named_by_its_path() -> None:
    """Its options are kept, and it encodes like the declared one."""
    stored = described(Noted(mark="!")).attributes["word"]
    assert (stored.kind, stored.options) == (f"{__name__}.Noted", {"mark": "!"})
    assert stored.stored_value("a") == {"S": "a!"}


def test_an_attribute_that_cannot_be_made_again_is_refused() -> None:
    """The error names the method that is missing."""
    with pytest.raises(ConfigurationError, match=r"stored_options\(\)"):
        described(Shouting(mark="!"))


def test_renaming_in_python_alone_changes_no_fingerprint() -> None:
    """The stored name and the key are the same; another literal makes another key."""

    def snapshot(name: str, literal: str) -> Snapshot:
        with forgotten():
            keys = {"by_title": models.IndexKey("gs1", literal, f"{{{name}}}")}
            attributes = {name: models.UnicodeAttribute(attr_name="t")}
            return Snapshot.of(declare("Renamed", ("B#{id}", "#"), keys, id=models.IdAttribute(), **attributes))

    before, after, other = snapshot("title", "T"), snapshot("name", "T"), snapshot("title", "U")
    assert before.key_fingerprint("by_title") == after.key_fingerprint("by_title") == "gs1 T {t:text}"
    assert other.key_fingerprint("by_title") != before.key_fingerprint("by_title")


def test_what_an_item_lacks_has_the_default_of_then() -> None:
    """The model reads it the same way."""
    with forgotten():
        model = declare(
            "Lamp", ("L#{lamp_id}", "#"), lamp_id=models.IdAttribute(), watts=models.IntegerAttribute(default=40)
        )
        assert Snapshot.of(model).values_of({}) == {"lamp_id": None, "watts": 40}


assert all(model in MODELS.values() for model in (Coupon, Member, Sample, Seat))


@given(number=st.integers(0, 99), moment=BY_KIND["timestamp"], is_deleted=st.booleans())
def test_shards_are_those_of_the_model(number: int, moment: datetime.datetime, *, is_deleted: bool) -> None:
    """They follow the table's schedule, in each key and in the trash."""
    schedule = Schedule((Entry(0, 1), Entry(900_000_000, 5), Entry(1_500_000_000, 8)))
    values = {
        "visit_id": f"v{number}",
        "at": moment,
        "ticket": None,
        "page": "/",
        "deleted_at": moment if is_deleted else None,
    }
    snapshot = SNAPSHOTS[Visit._meta.label]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knowledge, "schedule", lambda layout: schedule)
        patch.setattr(knowledge, "recorded_schedule", lambda table, item_type: schedule)
        assert snapshot.primary_key(values) == computed_key(Visit, values)
        assert snapshot.index_attributes(values) == key_attributes(Visit, values)


def test_renaming_keeps_what_shards_are_divided_by() -> None:
    """A key names its shards in a migration's state."""
    renamed = with_attribute_renamed(SNAPSHOTS[Visit._meta.label], "at", "moment")
    assert renamed.primary.sharded == models.Shards("visit_id", at="moment")
    assert renamed.keys["by_page"].sharded == models.Shards("visit_id", at="moment")
    assert renamed.key_fingerprint("trash") == SNAPSHOTS[Visit._meta.label].key_fingerprint("trash")


def test_a_model_that_gets_shards_leaves_its_items_as_they_are() -> None:
    """A single shard has the layout of an unsharded key, so the migration does not write."""
    after = SNAPSHOTS[Visit._meta.label]
    keys = {name: replace(key, sharded=False) for name, key in after.keys.items()}
    before = dataclasses.replace(after, primary=replace(after.primary, sharded=False), keys=keys)
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    values = {"visit_id": "v", "at": moment, "ticket": None, "page": "/", "deleted_at": None}
    item = {
        **item_key(before.primary_key(values)),
        "itemType": {"S": "Visit"},
        **before.index_attributes(values),
        **attributes_item(Visit, {**dict.fromkeys(registry.attributes_of(Visit)), **values}),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knowledge, "recorded_schedule", lambda table, item_type: Schedule())
        assert move_items(before, after).change(item, {}) == ()
