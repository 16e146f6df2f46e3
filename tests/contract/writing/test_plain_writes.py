"""What a write of a plain model passes: none of the modules that have nothing to do for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dynamo_single
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.table import Table
from project.directory.models import Company, Person
from tests.catalog.library import Aisle, Volume
from tests.catalog.models import Firm

pytestmark = pytest.mark.usefixtures("table")

PACKAGE = Path(dynamo_single.__file__).parent
#: The modules of what follows from a write; ``claims`` stands for unique values.
EFFECTS = {
    "claims",
    "unique_rules",
    "copies",
    "holders",
    "spreading",
    "child_counters",
    "derived",
    "version",
    "write_errors",
}


def entered(work: Callable[[], object]) -> set[str]:
    """The modules of ``orm/effects`` of which a function is called."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.parent == PACKAGE / "orm" / "effects":
            found.add(path.stem)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def test_a_plain_model_has_no_effects() -> None:
    """Nothing is looked for that follows from its items."""
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


@pytest.mark.parametrize(
    "write",
    [_save, lambda firm: firm.delete(), lambda firm: Firm.objects.create(firm_id="other", name="Other")],
    ids=["save", "delete", "create"],
)
def test_a_plain_write_enters_no_effect(write: Callable[[Firm], object], table: Table) -> None:
    """Claims, copies, counters, derived items and versions cost nothing where there are none."""
    firm = Firm.objects.create(firm_id="f", name="Firm")
    assert entered(lambda: write(firm)) & EFFECTS == set()
