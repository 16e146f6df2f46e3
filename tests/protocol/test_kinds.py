"""Every history of each table of phases: two processes, old and new code, one write of each, the command and time."""

from __future__ import annotations

import pytest

from dynamo_single.evolution.phases import KINDS, PUBLIC, Phase
from tests.deep import IS_DEEP, deep, examples
from tests.protocol.explore import Explorer
from tests.protocol.machine import Scenario
from tests.protocol.meaning import AFTER, Change, UnknownPart, meaning
from tests.protocol.scenarios import (
    EARLY,
    FEW,
    KINDS_OF_CHANGES,
    NUMBERS,
    RENAMED,
    SET,
    TOGETHER,
    early,
    processes,
    removing,
    workload,
)
from tests.protocol.stored import pass_of


def holds(scenario: Scenario) -> None:
    """Explore a scenario: no read is wrong in any state, and the command ends from every state."""
    found = Explorer(scenario).explore()
    assert found.is_complete
    assert not found.violation, f"{scenario.name}\n{found}"
    assert found.stuck == 0, f"{scenario.name}: the command does not end from {found.stuck} states"


@pytest.mark.parametrize("name", KINDS_OF_CHANGES)
def test_each_kind_holds(name: str) -> None:
    """With two kinds of writes, or all of them in a deep run."""
    change = KINDS_OF_CHANGES[name]
    holds(Scenario(name, (change,), workload(change, few=not IS_DEEP), turns=0))


@pytest.mark.parametrize("name", [name for name in KINDS_OF_CHANGES if name != "CHANGE_SHARDS"])
def test_each_kind_holds_when_it_is_reverted(name: str) -> None:
    """From each phase, with one kind of writes; in a deep run with all, and taken forward again. An entry stays."""
    change = KINDS_OF_CHANGES[name]
    operations = workload(change, few=not IS_DEEP)
    holds(Scenario(name, (change,), operations if IS_DEEP else operations[:1], turns=examples(1, 2)))


def test_numbers_hold_in_rename() -> None:
    """Additions go to both names."""
    holds(Scenario("numbers", RENAMED, NUMBERS, turns=examples(0, 1)))


@pytest.mark.parametrize("name", EARLY)
def test_parts_may_be_written_early(name: str) -> None:
    """New code may write a value, a number or a claim before all code has to: the pass repairs what old code left."""
    change = KINDS_OF_CHANGES[name]
    holds(Scenario(name, (change,), workload(change, few=False), turns=0, meant=early))


def test_absent_name_may_be_removed() -> None:
    """Writers may remove the absent name from their writes."""
    holds(Scenario("removing", RENAMED, NUMBERS if IS_DEEP else FEW, turns=examples(0, 1), meant=removing))


@pytest.mark.parametrize("name", TOGETHER)
def test_changes_hold_together(name: str) -> None:
    """Changes of one model move in the same bumps, unless one starts with another's result."""
    changes = TOGETHER[name]
    holds(Scenario(name, changes, workload(changes[0], few=True), turns=examples(0, 1)))


@pytest.mark.parametrize(
    "scenario", [*processes("ALTER_KEY", (KINDS_OF_CHANGES["ALTER_KEY"],), (SET,))], ids=lambda scenario: scenario.name
)
def test_processes_in_trouble_hold(scenario: Scenario) -> None:
    """Unwritable presence items, a lost fence, lost responses, clocks that differ, two commands, a slow index."""
    holds(scenario)


@deep
@pytest.mark.parametrize("name", KINDS_OF_CHANGES)
def test_each_kind_holds_for_processes_in_trouble(name: str) -> None:
    """The test is the same for every kind."""
    change = KINDS_OF_CHANGES[name]
    for scenario in processes(name, (change,), workload(change, few=True)):
        holds(scenario)


def test_unknown_part_is_not_ignored() -> None:
    """A kind of change that the checker does not know fails."""
    with pytest.raises(UnknownPart, match="'colour'"):
        _ = Change((Phase(), Phase({"colour": PUBLIC}))).aspect
    with pytest.raises(UnknownPart, match="'drop old'"):
        pass_of(Change(KINDS["CHANGE_ONCE"]), "drop old")


def test_code_without_a_name_is_unknown() -> None:
    """Code that no phase refuses has to read by some name."""
    change = Change((Phase({"old": PUBLIC}), Phase({"new": "written"})))
    with pytest.raises(UnknownPart, match="no name to read by"):
        meaning((change,), (1,), AFTER)
