"""Dependent changes run together, sequentially, and can be reverted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.evolution import drive
from dynamo_single.exceptions import FormNotApplied
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import Request, Table
from dynamo_single.table.flow import run
from dynamo_single.testing import setup_table
from tests.contract.item_migrations.test_migrate import form, item
from tests.contract.item_migrations.test_phases import by
from tests.histories.app import History, history


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app without models."""
    with history(tmp_path) as found:
        yield found


def shop(app: History, keys: dict[str, Any] | None = None, **attributes: Any) -> Any:
    """Return the new declaration of the model."""
    return app.model(keys=keys, bases=(models.SoftDeleteModel,), **attributes)


def text(**options: Any) -> Any:
    """An attribute."""
    return models.UnicodeAttribute(**options)


def renamed(app: History, *names: str, key: bool = False) -> list[Any]:
    """The model under each name of its attribute, with a migration for each."""
    found = []
    for number, name in enumerate(names):
        found.append(shop(app, by(name) if key else None, **{name: text()}))
        app.make(answers=["y"] if number else [])
        if not number:
            app.migrate()
            found[0].objects.create(shop_id="a", **{name: "A"})
    return found


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("until", range(5))
def test_an_attribute_is_renamed_twice(app: History, until: int, *, together: bool) -> None:
    """The second rename waits for the first, and code with each of the names continues."""
    codes = renamed(app, "one", "two", "three", key=True)
    if not together:
        app.migrate("0002")
    app.migrate(until=until)
    for number, (name, model) in enumerate(zip(("one", "two", "three"), codes, strict=True)):
        with app.code_of(f"000{number + 1}"):
            model.objects.create(shop_id=str(number), **{name: str(number)})
            model.objects.filter(pk="a").update(**{name: f"x{number}"})
    for name, model in zip(("one", "two", "three"), codes, strict=True):
        app.start()
        assert sorted(getattr(each, name) for each in model.objects.order_by(name)) == ["0", "1", "2", "x2"]
    app.migrate()
    assert {"one", "two"}.isdisjoint(item())
    assert sorted(each.three for each in codes[2].objects.order_by("three")) == ["0", "1", "2", "x2"]
    assert [each.one for each in codes[0].objects.filter(pk="a")] == ["x2"]
    assert list(verify()) == []


@pytest.mark.parametrize("until", [0, 1, 2, 3, None])
def test_a_rename_twice_is_taken_back(app: History, table: Table, until: int | None) -> None:
    renamed(app, "one", "two", key=True)
    was = form(table)
    shop(app, by("three"), three=text())
    app.make(answers=["y"])
    app.migrate(until=until)
    app.migrate("0001")
    assert form(table) == was
    old = shop(app, by("one"), one=text())
    assert [each.one for each in old.objects.order_by("one")] == ["A"]
    assert list(verify()) == []


def test_a_former_name_is_taken_by_a_new_attribute(app: History) -> None:
    """Code from before the rename would read the new attribute as its own, so it is blocked from then on."""
    old, renaming = renamed(app, "one", "two", key=True)
    app.migrate()
    new = shop(
        app, {**by("two"), "by_one": models.IndexKey("gs3", "SHOP", "{one:last}")}, two=text(), one=text(null=True)
    )
    app.make()
    app.migrate(until=0)
    for number, model in (("0001", old), ("0002", renaming)):
        with app.code_of(number):
            assert model.objects.get(pk="a").pk == "a"
    app.migrate()
    for number, model in (("0001", old), ("0002", renaming)):
        with app.code_of(number), pytest.raises(FormNotApplied, match=r"histories\.0003"):
            model.objects.get(pk="a")
    app.start()
    new.objects.create(shop_id="b", two="B", one="1")
    assert [(each.two, each.one) for each in new.objects.order_by("two")] == [("A", None), ("B", "1")]
    assert list(verify()) == []


def test_a_key_of_a_former_name_is_that_of_the_new_attribute(app: History) -> None:
    """Its fingerprint equals that of the key with the renamed attribute."""
    renamed(app, "one", "two", key=True)
    app.migrate()
    new = shop(app, by("one"), two=text(), one=text(default="1"))
    app.make()
    app.migrate()
    new.objects.create(shop_id="b", two="B", one="0")
    assert [each.one for each in new.objects.order_by("one")] == ["0", "1"]
    assert item()["gs2sk"] == "1#a"
    assert list(verify()) == []


def test_an_attribute_is_added_and_removed(app: History) -> None:
    """Two migrations are applied together, in their order."""
    old = shop(app)
    app.make()
    app.migrate()
    old.objects.create(shop_id="a")
    shop(app, town=text(default="Bern"))
    app.make()
    last = shop(app)
    app.make()
    app.migrate(until=1)
    assert item()["town"] == "Bern" if "town" in item() else app.phases()
    app.migrate()
    assert "town" not in item()
    last.objects.create(shop_id="b")
    assert list(verify()) == []


@pytest.mark.parametrize("until", [0, 1, 2, 3, None])
def test_code_that_made_the_changes_is_never_locked_out(app: History, until: int | None) -> None:
    """A rename, a folded copy of the new name, a key on both, and a default begin together."""
    old = shop(app, town=text())
    app.make()
    app.migrate()
    old.objects.create(shop_id="a", town="Bern")
    keys = {"by_fold": models.IndexKey("gs1", "SHOP", "{folded}#{shop_id}"), **by("place")}
    folded = models.CanonicalAttribute(source="place")
    new = shop(app, keys, place=text(), folded=folded, size=models.IntegerAttribute(default=1))
    app.make(answers=["y"])
    app.migrate(until=until)
    new.objects.create(shop_id="b", place="Thun")
    assert [new.objects.get(pk=pk).place for pk in "ab"] == ["Bern", "Thun"]
    new.objects.filter(pk="a").update(place="Basel")
    app.migrate()
    assert [each.pk for each in new.objects.filter(place__iexact="basel")] == ["a"]
    assert [each.place for each in new.objects.order_by("place")] == ["Basel", "Thun"]
    assert list(verify()) == []


def test_a_renamed_class_is_refused_before_its_migration(app: History) -> None:
    """Its items would seem missing, and new ones would be stored next to them."""
    shop(app, name=text()).objects.create(shop_id="a", name="A")
    app.make()
    app.migrate("--fake-initial")
    app.forget("Shop")
    new = app.model("Store", bases=(models.SoftDeleteModel,), name=text(), primary=("SHOP#{shop_id}", "#METADATA"))
    app.start()
    for work in (new.objects.get, new.objects.create):
        with pytest.raises(FormNotApplied, match="no migration has added it, and this code has no model for 'Shop'"):
            work(shop_id="b")
    app.make(answers=["y"])
    app.migrate()
    assert new.objects.get(pk="a").name == "A"


def test_code_of_before_a_renamed_class_is_refused_afterwards(app: History) -> None:
    old = shop(app, name=text())
    old.objects.create(shop_id="a", name="A")
    app.make()
    app.migrate("--fake-initial")
    app.forget("Shop")
    app.model("Store", bases=(models.SoftDeleteModel,), name=text(), primary=("SHOP#{shop_id}", "#METADATA"))
    app.make(answers=["y"])
    app.migrate()
    with (
        app.code_of("0001"),
        pytest.raises(FormNotApplied, match=r"its items have the itemType 'Store'.*histories\.0002"),
    ):
        old.objects.get(pk="a")


@pytest.mark.parametrize(("is_new", "needed"), [(True, {"0002"}), (False, set())])
def test_a_key_waits_for_code_that_has_its_attributes(
    app: History, table: Table, needed: set[str], *, is_new: bool
) -> None:
    """Code without the attribute cannot write the key, although it follows all other keys."""
    shop(app, **({} if is_new else {"town": text(null=True)}))
    app.make()
    app.migrate()
    shop(app, by("town"), town=text(null=True))
    app.make()
    app.migrate(until=0)
    state = run(knowledge.state_of(table))
    moving = [drive._Moving(each, drive.step_of(each)[0]) for each in drive.changes_in("default", state)]
    found = {name for each in moving for name in drive._needed(each, state)}
    assert {name.partition(".")[2][:4] for name in found} == needed


def test_changes_of_two_migrations_keep_their_names(app: History, table: Table) -> None:
    """Errors name them, and the positions of their passes are deleted, although one run executes both."""
    shop(app)
    app.make()
    app.migrate()
    shop(app).objects.create(shop_id="a")
    shop(app, town=text(default="Bern"))
    app.make("--name", "town")
    shop(app, by("town"), town=text(default="Bern"))
    app.make("--name", "key")
    app.migrate()
    assert form(table).required == {"town": "histories.0002_town"}
    keys = [each["sk"]["S"] for each in table.send(Request("Scan"))["Items"] if each["pk"]["S"] == "MIGRATIONS"]
    assert [key for key in keys if key.startswith("WORK#")] == []


def test_new_table_is_reverted_to_the_former_name(app: History, table: Table) -> None:
    """Both migrations ran at once on a table without items, whose form never had a key of the former name."""
    old, _ = renamed(app, "one", "two", key=True)
    setup_table()
    app.start()
    shop(app, by("two"), two=text())
    app.migrate()
    shop(app, by("two"), two=text()).objects.create(shop_id="a", two="A")
    app.migrate("0001")
    old = shop(app, by("one"), one=text())
    assert [each.one for each in old.objects.order_by("one")] == ["A"]
    assert list(verify()) == []
