"""Extracted attributes and their keys are written to existing items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynamo_single import migrations, models
from dynamo_single.exceptions import ConfigurationError, FormNotApplied, KeyNotFilled
from dynamo_single.table import Table
from tests.contract.item_migrations.test_migrate import item
from tests.contract.tables import assert_consistent
from tests.histories.app import Beginning, History, history

BY_TOWN = {"by_town": models.IndexKey("gs1", "SHOP#{town}", "{shop_id}")}


@Beginning
def begin(app: History) -> None:
    """Apply the first migration, and write with its code."""
    model = shop(app)
    app.make()
    app.migrate()
    for name, data in (
        ("a", {"at": {"town": "Bern"}}),
        ("b", {"at": {"village": "Wil"}}),
        ("c", {"at": {"town": "Basel"}}),
    ):
        model.objects.create(shop_id=name, data=data)
    model.objects.get(shop_id="c").delete()


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """An app whose model has two shops with a document, and one in the trash."""
    with history(tmp_path) as found:
        begin(found)
        shop(found)
        yield found


def shop(app: History, keys: dict[str, Any] | None = None, **attributes: Any) -> Any:
    """Return the new declaration of the model."""
    given = {"data": models.MapAttribute(default=dict), **attributes}
    return app.model(keys=keys, bases=(models.SoftDeleteModel,), options={"trash_index": "gs2"}, **given)


def towns() -> dict[str, Any]:
    """Return the towns stored next to the documents."""
    return {name: item(name).get("town") for name in "abc"}


def test_an_extracted_value_is_noticed_and_filled_with_the_key_that_names_it(app: History) -> None:
    new = shop(app, BY_TOWN, town=models.ExtractedAttribute("data__at__town"))
    app.make()
    written = "".join(path.read_text() for path in sorted(app.folder.glob("0002*.py")))
    assert "'UnicodeAttribute', 'town', required=False, source='data', steps=('at', 'town')" in written
    app.migrate(until=1, passed=True)
    with pytest.raises(KeyNotFilled):
        list(new.objects.filter(town="Bern"))
    app.migrate()
    assert towns() == {"a": "Bern", "b": None, "c": "Basel"}
    assert item()["gs1pk"] == "SHOP#Bern"
    assert not {"gs1pk"} & (item("b").keys() | item("c").keys())
    assert [each.pk for each in new.objects.filter(town="Bern")] == ["a"]
    new.deleted_objects.get(pk="c").restore()
    assert [each.pk for each in new.objects.filter(town="Basel")] == ["c"]
    assert_consistent()


def test_what_old_code_changes_before_it_is_refused_follows(app: History) -> None:
    old = shop(app)
    new = shop(app, BY_TOWN, town=models.ExtractedAttribute("data__at__town"))
    app.make()
    app.migrate(until=0)
    old.objects.filter(pk="a").update(data={"at": {"town": "Thun"}})
    app.migrate(until=1)
    with app.code_of("0001"), pytest.raises(FormNotApplied, match=r"does not have histories\.0002"):
        old.objects.filter(pk="a").update(data={"at": {"town": "Chur"}})
    app.migrate()
    assert (item()["town"], item()["gs1pk"]) == ("Thun", "SHOP#Thun")
    assert [each.pk for each in new.objects.filter(town="Thun")] == ["a"]


def test_another_place_is_a_change_and_the_same_one_is_none(app: History) -> None:
    shop(app, BY_TOWN, town=models.ExtractedAttribute("data__at__town"))
    app.make()
    app.migrate()
    assert "No changes" in app.make("--check")
    new = shop(app, BY_TOWN, town=models.ExtractedAttribute("data__at__village"))
    app.make()
    app.migrate()
    assert towns() == {"a": None, "b": "Wil", "c": None}
    assert [each.pk for each in new.objects.filter(town="Wil")] == ["b"]
    assert_consistent()


def test_another_place_of_what_is_unique_takes_other_claims(app: History) -> None:
    shop(app, town=models.ExtractedAttribute("data__at__town", unique=True))
    app.make()
    app.migrate()
    new = shop(app, town=models.ExtractedAttribute("data__at__village", unique=True))
    app.make()
    app.migrate()
    assert new.objects.get(town="Wil").pk == "b"
    assert_consistent()


def test_a_value_is_promoted_in_two_steps_and_old_code_may_go_on_meanwhile(app: History) -> None:
    """First it follows the document, then it is an attribute like any other; the document may lose it."""
    shop(app, town=models.ExtractedAttribute("data__at__town"))
    app.make()
    app.migrate()
    new = shop(app, town=models.UnicodeAttribute(null=True))
    app.make()
    app.migrate()
    assert towns() == {"a": "Bern", "b": None, "c": "Basel"}
    found = new.objects.get(pk="a")
    found.town = "Chur"
    found.save()
    assert item()["town"] == "Chur"
    assert new.objects.get(pk="a").data == {"at": {"town": "Bern"}}


def test_a_value_is_promoted_at_once_by_a_computed_attribute(app: History) -> None:
    """``compute=Extract(...)`` gives those items a value that lack one; what has no such place stays without."""
    new = shop(app, town=models.UnicodeAttribute(null=True))
    (app.folder / "0002_town.py").write_text(
        "from django.db import migrations\n"
        "from dynamo_single import migrations as items\n\n\n"
        "class Migration(migrations.Migration):\n"
        "    dependencies = [('histories', '0001_initial')]\n"
        "    operations = [\n"
        "        items.AddAttribute(\n"
        "            'Shop',\n"
        "            'town',\n"
        "            items.StoredAttribute('UnicodeAttribute', 'town', required=False),\n"
        "            compute=items.Extract('data__at__town'),\n"
        "        )\n"
        "    ]\n"
    )
    assert "No changes" in app.make("--check")
    app.migrate()
    assert towns() == {"a": "Bern", "b": None, "c": "Basel"}
    assert new.objects.get(pk="a").town == "Bern"


def test_a_value_of_another_kind_is_reported_by_its_item(app: History) -> None:
    old = shop(app)
    old.objects.filter(pk="b").update(data={"at": {"town": 5}})
    shop(app, town=models.ExtractedAttribute("data__at__town"))
    app.make()
    with pytest.raises(Exception, match="town must be a string"):
        app.migrate()


@pytest.mark.parametrize("path", ["data", "data__", "__x", ""])
def test_a_path_that_names_no_place_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError, match="names no place inside a document"):
        migrations.Extract(path)


def test_a_record_is_written_into_a_migration_and_a_key_of_its_own_moves_the_list(tmp_path: Path, table: Table) -> None:
    """The list is on the first index; a new key there moves it to the next one, and items are updated."""
    with history(tmp_path) as found:
        base = {"primary": ("{id}", "#SHOP"), "bases": (models.Record,)}
        old = found.model(**base)
        found.make()
        found.migrate()
        assert "No changes" in found.make("--check")
        obj = old.objects.create(data={"town": "Bern"})
        new = found.model(
            keys={"by_town": models.IndexKey("gs1", "SHOP#{town}", "{id}")},
            **base,
            town=models.ExtractedAttribute("data__town"),
        )
        found.make()
        found.migrate()
        assert "No changes" in found.make("--check")
        assert [each.pk for each in new.objects.filter(town="Bern")] == [obj.pk]
        assert [each.pk for each in new.objects.all()] == [obj.pk]
        assert_consistent()
