"""``makemigrations`` describes the effect of each change on running code, and suggests a cheaper way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dynamo_single import models
from dynamo_single.table import Table
from tests.contract.item_migrations.test_phases import CASES, NO_LIST, REFUSED, Case
from tests.histories.app import History, history


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app without models."""
    with history(tmp_path) as found:
        yield found


def said(app: History, case: Case) -> str:
    """Return the output of ``makemigrations`` for a change."""
    for code in (case.before, case.after):
        app.forget("Shop")
        given = {"name": models.UnicodeAttribute(), **code.declared}
        app.model(code.name, bases=(models.SoftDeleteModel,), **given)
        answers = case.answers if code is case.after else ()
        text = app.make(answers=answers)
    return text


def effect(case: Case) -> str:
    """Return the expected description, from the abilities of both codes in the phases."""
    before, after = zip(*case.phases, strict=True)
    if any(one == other == REFUSED for one, other in case.phases):
        return "unavailable to all code while items are converted"
    if REFUSED in before:
        return ": unavailable to old code"
    if NO_LIST in before:
        return "lists by this key are unavailable" + (" until then" if NO_LIST in after else " to old code")
    return ": online."


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.phases and not case.operations])
def test_each_change_says_what_code_will_notice(app: History, name: str) -> None:
    assert effect(CASES[name]) in said(app, CASES[name])


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("AlterKey", "To keep all lists working, add a new key on another index"),
        ("RenameModel with its items", 'With item_type = "Shop" in class Meta, the items do not change'),
        ("RenameAttribute of what is unique", 'With attr_name="town", the stored values do not change'),
        ("AlterAttribute", "Pass convert= to the operation, a function of the old value"),
    ],
)
def test_a_cheaper_way_is_named(app: History, name: str, way: str) -> None:
    assert way in said(app, CASES[name])


@pytest.mark.parametrize("name", ["RenameModel", "AddAttribute that may be missing", "RenameKey"])
def test_what_changes_no_item_says_nothing(app: History, name: str) -> None:
    text = said(app, CASES[name])
    assert not any(word in text for word in ("online", "refused"))
