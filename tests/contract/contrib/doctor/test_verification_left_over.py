"""The verification of a table with migrations: presence items, and attributes that no code of today writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from dynamo_single.contrib.doctor import verify
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import Rename
from dynamo_single.table import Request, Table
from tests.catalog.clubs import Club
from tests.contract.model.test_filled import FORM, LAYOUT, MIGRATED


@pytest.fixture
def club(table: Table, settings: Any) -> Iterator[Club]:
    """Return a club in a table with applied migrations."""
    settings.MIGRATION_MODULES = MIGRATED
    record(table)
    yield Club.objects.create(club_id="c", name="Acme")
    knowledge.forget()


def record(table: Table, **changes: Any) -> None:
    """Record the form of clubs."""
    knowledge.change(table, lambda state: state.with_form(LAYOUT.item_type, replace(FORM, **changes)))


def put(table: Table, club: Club, **values: Any) -> None:
    """Write attributes past the model."""
    key = {"pk": {"S": club.partition_key}, "sk": {"S": club.sort_key}}
    item = table.send(Request("GetItem", {"Key": key}))["Item"]
    table.send(Request("PutItem", {"Item": {**item, **values}}))


def found() -> list[tuple[str, str]]:
    """The findings in the whole table."""
    return [(each.kind, each.text) for each in verify()]


def test_item_as_its_form_says_is_right(club: Club) -> None:
    club.delete()
    assert found() == []


def test_former_name_of_an_attribute_is_left_over(club: Club, table: Table) -> None:
    """A late process may have written it: the report contains the new name."""
    record(table, renames={"name": Rename("title", 3)})
    put(table, club, title={"S": "Acme"})
    text = "It has title, which the current code does not write: name replaces it."
    assert found() == [("attribute left over", text)]


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_both_names_are_right_while_a_rename_is_open(club: Club, table: Table, phase: int) -> None:
    """Code writes both, and the last pass removes the old one."""
    attributes = {**FORM.attributes, "title": FORM.attributes["name"]}
    record(table, attributes=attributes, renames={"name": Rename("title", phase)})
    put(table, club, title={"S": "Acme"})
    assert [kind for kind, _ in found() if kind == "attribute left over"] == []


def test_key_on_a_removed_index_is_left_over(club: Club, table: Table) -> None:
    """The table's settings name no such index."""
    put(table, club, gs9pk={"S": "CLUB"})
    assert found() == [("attribute left over", "It has gs9pk, which the current code does not write.")]


def test_left_over_attribute_is_not_repaired(club: Club, table: Table) -> None:
    """The attribute may have the acknowledged value."""
    put(table, club, town={"S": "Bern"})
    (finding,) = verify()
    assert not finding.is_repairable


def test_attribute_of_a_model_without_migrations_is_somebody_elses(table: Table) -> None:
    """Other programs may write into its items."""
    put(table, Club.objects.create(club_id="c", name="Acme"), town={"S": "Bern"})
    assert found() == []


def test_presence_item_is_no_finding(club: Club, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "replaced", 0)
    knowledge._tables.clear()
    assert found() == []
    presence = knowledge._tables[table].presence
    assert presence is not None
    presence.end(table)
