"""The checker finds the holes of the protocol of before, and a wrong history without any one of the rules."""

from __future__ import annotations

import pytest

from dynamo_single.evolution.phases import KINDS, PUBLIC, WRITTEN, Phase, Phases
from tests.protocol.before import CASES, PROGRAMS, Case, steps_of
from tests.protocol.explore import Explorer
from tests.protocol.machine import Rules, Scenario
from tests.protocol.meaning import Change
from tests.protocol.scenarios import ALL, CLAIMED, FEW, NUMBERS, without_rules
from tests.protocol.stored import Operation

#: The checker's findings for each former change: the holes, by assumption.
HOLES = {
    "AddKey": ("lists", "", ""),
    "AlterKey": ("lists {} without an error", "ended, and item 0 has the entry ('old'", ""),
    "RenameAttribute": ("reads 0 of item 0 (1, 0)", "reads None", "reads 1 of item 0 (1, 2), acknowledged is 2"),
    "AddUnique": ("the claim on 0 names 0, and [] has it", "", ""),
}
WORK: dict[str, tuple[Operation, ...]] = {"RenameAttribute": NUMBERS, "AddUnique": CLAIMED}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("name", PROGRAMS)
def test_holes_of_before_are_found(name: str, case: Case) -> None:
    """Changes without a hole have no finding."""
    steps = steps_of(name, case, WORK.get(name, FEW))
    found = Explorer(steps.scenario, steps).explore()
    wanted = HOLES[name][CASES.index(case)]
    assert wanted in found.violation
    assert bool(wanted) == bool(found.violation)


@pytest.mark.parametrize("scenario", [*without_rules()], ids=lambda scenario: scenario.name)
def test_each_rule_is_needed(scenario: Scenario) -> None:
    """Without one of them a history is wrong."""
    assert Explorer(scenario).explore().violation


def test_every_rule_is_left_out() -> None:
    """A new rule needs a scenario."""
    names = {scenario.name.removeprefix("without ") for scenario in without_rules()}
    assert {*Rules._fields} - names == {"skew", "forgets_silent"}


def test_command_that_forgets_nobody_is_stuck() -> None:
    """A silent process would stop it for ever."""
    rules = Rules(forgets_silent=False)
    found = Explorer(Scenario("", (Change(KINDS["ADD_KEY"]),), FEW, turns=0, rules=rules)).explore()
    assert not found.violation
    assert found.stuck


def _without(kind: str, number: int) -> Phases:
    return KINDS[kind][:number] + KINDS[kind][number + 1 :]


#: Tables without a step, a pass or a block, and the writes that show the fault.
WRONG: dict[str, tuple[Change, tuple[Operation, ...]]] = {
    "a rename without the phase that writes both names and reads the old one": (Change(_without("RENAME", 1)), FEW),
    "a rename without the phase that writes both names and reads the new one": (Change(_without("RENAME", 2)), FEW),
    "an altered key without the phase in which nobody reads it": (Change(_without("ALTER_KEY", 1)), FEW),
    "a new key that is read at once": (Change(_without("ADD_KEY", 1)), FEW),
    "a removed key that is read until the end": (Change(_without("REMOVE_KEY", 1)), FEW),
    "a rule that old code does not follow": (
        Change(tuple(Phase(each.parts, each.passes, each.back) for each in KINDS["ADD_UNIQUE"])),
        CLAIMED,
    ),
    "a conversion that is not converted back": (
        Change((KINDS["PAUSE"][0], Phase(passes=("convert",), refused="everybody"), KINDS["PAUSE"][2])),
        FEW,
    ),
    "a computed value that is removed as a stored one": (Change(KINDS["REMOVE_VALUE"], is_derived=True), FEW),
    "a new name that nothing copies to": (
        Change((KINDS["RENAME"][0], Phase({"old": PUBLIC, "new": WRITTEN}), *KINDS["RENAME"][2:])),
        ALL,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_table_is_found(name: str) -> None:
    """The tables themselves are checked."""
    change, operations = WRONG[name]
    assert Explorer(Scenario(name, (change,), operations)).explore().violation
