"""``ChangeShards``: a migration lets a model have another number of shards, for objects to come."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from dynamo_single import models
from dynamo_single.contrib.doctor import repair, verify
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.migrations import ChangeShards
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.rollout.states import StoredShards
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Entry
from dynamo_single.table import Table, get_table
from dynamo_single.testing import capture_requests, frozen_time
from tests.contract.tables import assert_consistent, everything
from tests.histories.app import History, history

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEYS: dict[str, Any] = {
    "shards": models.Shards("shop_id", at="made"),
    "listed": models.IndexKey("gs1", "SHOP", "{made}#{shop_id}", sharded=True),
}


@pytest.fixture
def clock() -> Iterator[Any]:
    """Noon."""
    with frozen_time(NOON) as clock:
        yield clock


@pytest.fixture
def app(tmp_path: Path, table: Table, clock: Any) -> Iterator[History]:
    """The app, at noon."""
    with history(tmp_path) as found:
        yield found


def shop(app: History, keys: dict[str, Any] | None = None) -> Any:
    """A model in shards, of which the migrations know."""
    found = app.model(
        "Shop",
        KEYS if keys is None else keys,
        primary=("SHOP", "{shop_id}", keys is None),
        made=models.TimestampAttribute(auto_now_add=True, immutable=True),
    )
    app.make()
    return found


def write(app: History, name: str, *operations: str) -> None:
    """Write a migration by hand, after the last one."""
    before = app.files[-1]
    (app.folder / f"{name}.py").write_text(
        "from datetime import UTC, datetime\n"
        "from django.db import migrations\n"
        "from dynamo_single import migrations as items\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('histories', {before!r})]\n"
        f"    operations = [{', '.join(operations)}]\n"
    )


def schedule(model: Any) -> str:
    """Return the table's schedule as a string."""
    return str(knowledge.schedule(registry.layout_of(model)))


def test_a_new_table_has_the_number_at_once(app: History) -> None:
    """No stored item can be in another shard."""
    model = shop(app)
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    assert "histories.Shop: 8 shards." in app.migrate()
    assert schedule(model) == "8 shards"


def test_stored_items_stay_and_later_ones_are_in_shards(app: History, table: Table, clock: Any) -> None:
    """The growth starts when every process knows it, and the command prints the time."""
    model = shop(app)
    app.migrate()
    model.objects.create(shop_id="old")
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    assert "histories.Shop: 1 shard, 8 shards from 2026-01-01T12:08:00Z on." in app.migrate()
    clock.move(timedelta(hours=1))
    model.objects.create(shop_id="new")
    assert {key for key in everything(table) if key[1] in ("old", "new")} == {("SHOP", "old"), ("SHOP!5", "new")}
    assert [each.shop_id for each in model.objects.order_by("made")] == ["old", "new"]


def test_nothing_is_written_of_the_models_declaration(app: History) -> None:
    """The table contains the number, so makemigrations finds no change, and the state is the same."""
    shop(app)
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    assert "No changes detected" in app.make("--check")


@pytest.mark.parametrize(
    ("since", "begins"), [("2026, 2, 1", "2026-02-01T00:00:00Z"), ("2025, 1, 1", "2026-01-01T12:08:00Z")]
)
def test_the_number_counts_not_before_a_time(app: History, since: str, begins: str) -> None:
    """A time that is past at the migration means as early as possible."""
    model = shop(app)
    app.migrate()
    model.objects.create(shop_id="old")
    write(app, "0002_shards", f"items.ChangeShards('Shop', 8, since=datetime({since}, tzinfo=UTC))")
    app.migrate()
    assert schedule(model) == f"1 shard, 8 shards from {begins} on"


def test_what_is_recorded_already_stays(app: History, clock: Any) -> None:
    """This includes a migration that was killed before Django recorded it, and a number from the command."""
    model = shop(app)
    app.migrate()
    model.objects.create(shop_id="old")
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    app.migrate()
    before = schedule(model)
    app.migrate("0001", fake=True)
    clock.move(timedelta(days=1))
    assert f"histories.Shop: {before}." in app.migrate()
    assert schedule(model) == before


def test_an_entry_that_would_come_before_another_is_refused(app: History) -> None:
    """The recorded later number would be lost, so the migration is not applied."""
    model = shop(app)
    app.migrate()
    model.objects.create(shop_id="old")
    app.run("dynamo_shards", "histories.Shop", "32", since="2027-01-01T00:00Z")
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    with pytest.raises((CommandError, InvalidValue), match="has 32 shards from 2027-01-01T00:00:00Z on: a further"):
        app.migrate()
    assert schedule(model) == "1 shard, 32 shards from 2027-01-01T00:00:00Z on"


def test_a_history_of_numbers_goes_into_a_new_table(app: History) -> None:
    """The first at once, the others as early as they can; squashed, the last one counts from the beginning."""
    model = shop(app)
    write(app, "0002_eight", "items.ChangeShards('Shop', 8)")
    write(app, "0003_sixteen", "items.ChangeShards('Shop', 16, since=datetime(2025, 1, 1, tzinfo=UTC))")
    write(app, "0004_four", "items.ChangeShards('Shop', 4)")
    app.migrate()
    assert schedule(model) == "8 shards, 16 shards from 2026-01-01T12:08:00Z on, 4 shards from 2026-01-01T12:09:00Z on"


def test_two_numbers_are_squashed_into_the_later_one() -> None:
    """And neither into the model, which does not have it."""
    eight, sixteen = ChangeShards("Shop", 8), ChangeShards("shop", 16)
    assert eight.reduce(sixteen, "histories") == [sixteen]


def test_going_back_leaves_the_number_and_says_so(app: History) -> None:
    """Items are divided by it, and a second migration finds it."""
    model = shop(app)
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    app.migrate()
    assert "histories.Shop: 8 shards (unchanged: items use this number of shards" in app.migrate("0001")
    assert schedule(model) == "8 shards"
    assert "histories.Shop: 8 shards." in app.migrate()


def test_a_model_without_sharded_keys_is_refused(app: History) -> None:
    """The error is raised before anything is recorded."""
    shop(app, {})
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    with pytest.raises((CommandError, ConfigurationError), match="Shop has no sharded key in the migrations before"):
        app.migrate()


@pytest.mark.parametrize("shards", [0, 65])
def test_a_number_that_cannot_be_is_refused(shards: int) -> None:
    """The error is raised when the file is read."""
    with pytest.raises(InvalidValue, match="1 to 64 shards"):
        ChangeShards("Shop", shards)


def test_what_a_migration_sends_is_shown(app: History) -> None:
    """The schedule is read, and changed once with a condition."""
    model = shop(app)
    app.migrate()
    model.objects.create(shop_id="old")
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    assert "-- migrate: GetItem and PutItem" in app.run("sqlmigrate", "histories", "0002")
    with capture_requests() as sent:
        app.migrate()
    assert [each.operation for each in sent if "#STATE" in str(each.params)].count("PutItem") == 1


def test_items_are_looked_for_once_before_the_first_number(app: History) -> None:
    """The search may scan the whole table."""
    shop(app)
    app.migrate()
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    with capture_requests() as sent:
        app.migrate()
    looks = [each for each in sent if each.params.get("ExpressionAttributeValues", {}).get(":pk") == {"S": "SHOP"}]
    assert len(looks) == 1


def test_a_model_that_gets_keys_without_shards_again_is_read_as_any_other(app: History, table: Table) -> None:
    """Its items move into one partition, and the table removes the schedule."""
    model = shop(app)
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    app.migrate()
    for number in range(9):
        model.objects.create(shop_id=f"s{number}")
    keys = {"listed": models.IndexKey("gs1", "SHOP", "{made}#{shop_id}")}
    plain = shop(app, keys)
    app.migrate()
    app.finish()
    assert len(list(plain.objects.all())) == 9
    plain.objects.create(shop_id="after")
    assert {key[0] for key in everything(table) if key[1].startswith("s")} == {"SHOP"}


def test_items_that_get_another_type_are_in_as_many_shards_as_the_migration_says(app: History, table: Table) -> None:
    """The default is one; a number is recorded before the move, and items are found in both."""
    model = shop(app)
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    app.migrate()
    for number in range(5):
        model.objects.create(shop_id=f"s{number}")
    made = models.TimestampAttribute(auto_now_add=True, immutable=True)
    moved = app.model("Shop", KEYS, primary=("SHOP", "{shop_id}", True), made=made, options={"item_type": "Store"})
    app.make()
    write(app, "0004_shards", "items.ChangeShards('Shop', 4)")
    app.migrate()
    app.finish()
    assert schedule(moved) == "4 shards"
    assert {key[0] for key in everything(table) if key[1].startswith("s")} <= {f"SHOP!{shard}" for shard in range(4)}
    assert len(moved.objects.all()) == len(moved.objects.in_bulk([f"s{number}" for number in range(5)])) == 5


def folding(app: History, prefix: str = "shop") -> Any:
    """Return a model with a folded address and migrations."""
    found = app.model(
        "Shop",
        {"shards": models.Shards("shop_id", at="made")},
        primary=("SHOP", f"{prefix}#{{shop_id:canonical}}", True),
        shop_id=models.UnicodeAttribute(),
        made=models.TimestampAttribute(immutable=True),
    )
    app.make()
    return found


def spelled(model: Any) -> None:
    """Record eight shards that hash the exact spelling, as earlier releases did."""
    recorded = StoredShards("shop_id", "made", (Entry(0, 8),))
    knowledge.change(get_table("default"), lambda state: knowledge.replace(state, shards={"Shop": recorded}))


def test_the_same_number_is_recorded_anew_if_it_folds(app: History, clock: Any) -> None:
    """An earlier release's entry hashes each spelling."""
    model = folding(app)
    app.migrate()
    spelled(model)
    model.objects.create(shop_id="Anna", made=NOON)
    write(app, "0002_shards", "items.ChangeShards('Shop', 8)")
    assert "8 shards, 8 shards (canonical) from 2026-01-01T12:08:00Z on" in app.migrate()
    write(app, "0003_again", "items.ChangeShards('Shop', 8)")
    app.migrate()
    assert schedule(model).count("canonical") == 1


def test_a_moved_key_stays_in_the_shard_of_the_folded_value(app: History, table: Table, clock: Any) -> None:
    """A repair has moved its object there."""
    old = folding(app)
    app.migrate()
    spelled(old)
    old.objects.create(shop_id="Anna", made=NOON)
    shard_record.grow(table, registry.layout_of(old), 8, NOON + timedelta(hours=1))
    clock.move(timedelta(hours=2))
    assert [repair(finding) for finding in verify()] == [True]
    new = folding(app, "store")
    app.finish()
    assert new.objects.get(pk="anna").shop_id == "Anna"
    assert_consistent()
