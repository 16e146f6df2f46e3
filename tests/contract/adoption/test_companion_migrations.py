"""Migrations of a table that the app does not own: their state and their work are in its companion."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.evolution.processes import processes
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.presence import Presence
from dynamo_single.table import Table, get_table
from dynamo_single.table.flow import run
from tests.contract.adoption.conftest import ADOPTED, keys, raw, types
from tests.histories.app import History, history

STATE = ("COMPANION#shop#MIGRATIONS", "#STATE")


@pytest.fixture
def app(tmp_path: Path) -> Iterator[History]:
    with history(tmp_path) as found:
        yield found


def shop(app: History, **attributes: Any) -> Any:
    """Declare a shop of the adopted table."""
    return app.model(options={"table": ADOPTED}, **attributes)


def begun(app: History) -> Any:
    """Return a shop with an applied first migration, and two of its objects."""
    Shop = shop(app, name=models.UnicodeAttribute())
    app.make()
    app.migrate()
    for number in range(2):
        Shop.objects.create(shop_id=f"s{number}", name=f"n{number}")
    return Shop


def test_state_of_an_adopted_table_is_in_the_companion(app: History, adopted: Table) -> None:
    begun(app)

    assert types(adopted) == {"Shop": 2}
    assert STATE in keys(get_table())
    assert [form.label for form in run(knowledge.state_of(adopted)).forms.values()] == ["histories.shop"]


def test_the_companion_has_a_state_of_its_own(app: History, adopted: Table) -> None:
    begun(app)

    assert "Shop" not in run(knowledge.state_of(get_table())).forms


def test_migrate_backfills_a_key_of_adopted_items(app: History, adopted: Table) -> None:
    begun(app)
    by_name = models.IndexKey("gs1", "SHOPNAME#{name}", "{shop_id}")
    Shop = shop(app, name=models.UnicodeAttribute(), keys={"by_name": by_name})
    app.make()

    app.migrate()

    assert [each.shop_id for each in Shop.objects.filter(name="n1")] == ["s1"]
    assert types(adopted) == {"Shop": 2}
    assert {key[0] for key in keys(get_table())} == {STATE[0], "MIGRATIONS"}


def test_migrate_takes_claims_of_adopted_items(app: History, adopted: Table) -> None:
    begun(app)
    Shop = shop(app, name=models.UnicodeAttribute(unique=True))
    app.make()

    app.migrate()

    assert Shop.objects.get(name="n1").shop_id == "s1"
    assert types(get_table())["UniqueClaim"] == 2
    assert types(adopted) == {"Shop": 2}


def test_migrate_releases_claims_in_the_companion(app: History, adopted: Table) -> None:
    Shop = shop(app, name=models.UnicodeAttribute(unique=True))
    app.make()
    app.migrate()
    Shop.objects.create(shop_id="s1", name="n1")
    shop(app, name=models.UnicodeAttribute())
    app.make()

    app.migrate()

    assert "UniqueClaim" not in types(get_table())
    assert types(adopted) == {"Shop": 1}


def test_a_renamed_attribute_follows_the_companions_state(app: History, adopted: Table) -> None:
    begun(app)
    Shop = shop(app, title=models.UnicodeAttribute())
    app.make(answers=["y"])

    app.migrate()

    assert [each.title for each in Shop.objects.filter(pk__in=["s0", "s1"])] == ["n0", "n1"]
    assert all("name" not in item and "title" in item for item in raw(adopted))


def test_migrate_without_a_companion_writes_nothing(app: History, lone: Table) -> None:
    shop(app, name=models.UnicodeAttribute())
    app.make()

    with pytest.raises(Exception, match=r"\['COMPANION'\]"):
        app.migrate()

    assert raw(lone) == []


def test_presence_items_of_an_adopted_table_are_its_own(adopted: Table) -> None:
    process, other = (Presence({"shop": "0001"}) for _ in range(2))
    process.register(adopted)
    other.register(get_table())

    assert [each.key for each in processes(adopted)[0]] == [process.key]
    assert raw(adopted) == []
    process.end(adopted)
    assert processes(adopted)[0] == []
    other.end(get_table())


def test_code_without_migrations_needs_no_companion(lone: Table) -> None:
    from tests.unit.declaring import declare

    Note = declare("Note", ("NOTE#{name}", "#NOTE"), options={"table": ADOPTED}, name=models.UnicodeAttribute())

    Note.objects.create(name="n1")

    assert (types(lone), types(get_table())) == ({"Note": 1}, {})
    assert run(knowledge.state_of(lone)).revision == 0


def test_change_of_a_state_without_a_companion_is_refused(lone: Table) -> None:
    with pytest.raises(ConfigurationError, match="Nothing was written"):
        knowledge.change(lone, lambda state: state)
