"""A write of a plain model does not enter modules of features that it does not use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dynamo_single
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.schema import bindings
from dynamo_single.table import Table
from project.directory.models import Company, Person
from tests.catalog.library import Aisle, Volume
from tests.catalog.models import Firm, Product
from tests.other_names import typed

pytestmark = pytest.mark.usefixtures("table")

PACKAGE = Path(dynamo_single.__file__).parent
#: The modules for dependent writes, and for an open migration.
UNCONCERNED = {
    "orm.effects.copies",
    "orm.effects.copy_updates",
    "orm.effects.counters",
    "orm.effects.derived",
    "orm.effects.unique_claims",
    "orm.items.unique_rules",
    "orm.items.version",
    "orm.schema.keys.shards",
    "orm.schema.upgrades",
}


def entered(work: Callable[[], object]) -> list[str]:
    """Count the function calls by module."""
    found: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents:
            found.append(".".join(path.relative_to(PACKAGE).with_suffix("").parts))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def test_a_plain_model_has_no_effects() -> None:
    """The app does not look for dependent items."""
    assert effects_of(Firm) == ()


def test_the_effects_of_a_model_are_what_it_declares() -> None:
    """Each kind that a model has to do with, once."""
    kinds = {model: [type(each).__name__ for each in effects_of(model)] for model in (Aisle, Volume, Company, Person)}
    assert kinds == {
        Aisle: ["Claims", "CopyUpdates"],
        Volume: ["Claims", "Copies", "Counters"],
        Company: [],
        Person: ["Claims"],
    }


def _save(firm: Firm) -> None:
    firm.name = "Changed"
    firm.save()


WRITES = pytest.mark.parametrize(
    "write",
    [_save, lambda firm: firm.delete(), lambda firm: Firm.objects.create(firm_id="other", name="Other", stock="O")],
    ids=["save", "delete", "create"],
)


@WRITES
@typed
def test_a_plain_write_enters_no_effect(write: Callable[[Firm], object], table: Table) -> None:
    """Unused claims, copies, counters, derived items, versions, shards and upgrades do not cost anything."""
    firm = Firm.objects.create(firm_id="f", name="Firm", stock="F")
    assert UNCONCERNED.isdisjoint(entered(lambda: write(firm)))


@pytest.mark.parametrize("model", [Firm, Product])
def test_a_plain_write_asks_nothing_of_migrations(model: Any, table: Table) -> None:
    """Once the state is cached, an operation takes its binding and keeps it to the end."""
    names = {Firm: {"firm_id": "f", "name": "Firm", "stock": "F"}, Product: {"product_id": "p"}}[model]
    model.objects.create(**names).hard_delete()
    obj = model.objects.create(**names)
    change = {"stock": "Changed"} if model is Firm else {"data": {"a": 1}}
    vars(obj).update(change)
    for write in (obj.save, obj.hard_delete, lambda: model.objects.create(**names)):
        assert not [name for name in entered(write) if name.startswith("orm.rollout.")]


def test_a_save_takes_one_binding(monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """The save also checks once whether the state must be read."""
    firm = Firm.objects.create(firm_id="f", name="Firm", stock="F")
    firm.save()
    taken: list[Any] = []
    settled = bindings.binding_if_known
    monkeypatch.setattr(bindings, "binding_if_known", lambda *given: taken.append(given) or settled(*given))
    monkeypatch.setattr(bindings, "binding_of", lambda subject: pytest.fail("The binding is taken already."))
    firm.name = "Changed"
    firm.save()
    assert len(taken) == 1
