"""Three processes: every history of a new key and a new rule, and random histories of all other kinds."""

from __future__ import annotations

import random

import pytest

from tests.deep import deep, examples
from tests.protocol.explore import Explorer
from tests.protocol.machine import Scenario
from tests.protocol.meaning import AFTER, BEFORE
from tests.protocol.scenarios import KINDS_OF_CHANGES, TOGETHER, processes, without_rules, workload
from tests.protocol.test_kinds import holds

CODES = ((BEFORE, AFTER, AFTER), (BEFORE, BEFORE, AFTER))
#: The kinds and the changes that are open together whose histories with three processes are too many to visit.
RANDOM = {
    **{name: (change,) for name, change in KINDS_OF_CHANGES.items() if name not in {"ADD_KEY", "ADD_UNIQUE"}},
    **TOGETHER,
}
#: The number per process, for a total of a million.
HISTORIES = examples(20, 50_000)


@deep
@pytest.mark.parametrize("codes", CODES, ids=["one old", "two old"])
@pytest.mark.parametrize("few", [False, True], ids=["all writes", "reverted"])
@pytest.mark.parametrize("name", ["ADD_KEY", "ADD_UNIQUE"])
def test_new_key_and_rule_hold(name: str, few: bool, codes: tuple[int, ...]) -> None:
    """This includes all kinds of writes, and two kinds in a revert."""
    change = KINDS_OF_CHANGES[name]
    holds(Scenario(name, (change,), workload(change, few=few), codes=codes, turns=int(few)))


@pytest.mark.parametrize("name", RANDOM)
def test_random_histories_hold(name: str) -> None:
    """Each process writes twice, responses are lost, and commands are stopped, replaced, reverted and resumed."""
    changes = RANDOM[name]
    choose = random.Random(name)
    scenario = Scenario(name, changes, workload(changes[0], few=False), budget=2, unanswered=True, commands=True)
    turns = 0 if changes[0].aspect == "schedule" else 2
    explorers = [Explorer(scenario._replace(codes=codes, turns=turns)) for codes in CODES]
    ended = 0
    for number in range(HISTORIES):
        found = explorers[number % 2].walk(choose)
        assert not found.violation, f"{name}\n{found}"
        ended += found.is_complete
    assert ended


def test_there_are_a_million_histories() -> None:
    """In a deep run, whichever kinds there are."""
    assert 50_000 * len(RANDOM) >= 1_000_000


@deep
@pytest.mark.parametrize("name", RANDOM)
def test_random_histories_hold_for_processes_in_trouble(name: str) -> None:
    """Each thing that can go wrong, for three processes."""
    changes, choose = RANDOM[name], random.Random(name)
    for scenario in processes(name, changes, workload(changes[0], few=True)):
        explorer = Explorer(scenario._replace(codes=CODES[0]))
        for _ in range(1000):
            found = explorer.walk(choose)
            assert not found.violation, f"{scenario.name}\n{found}"


#: The rules whose lack fewer than one in 10,000 histories of two processes shows, and hardly one of three.
#: ``test_rules.py`` finds it in all histories of two.
RARE = {"without waits_for_unanswered", "without waits_for_commands"}


@deep
@pytest.mark.parametrize(
    "scenario", [each for each in without_rules() if each.name not in RARE], ids=lambda scenario: scenario.name
)
def test_random_histories_find_what_is_wrong(scenario: Scenario) -> None:
    """The histories of each kind detect each missing rule, except the ``RARE`` ones."""
    explorer, choose = Explorer(scenario._replace(codes=CODES[0])), random.Random(scenario.name)
    assert any(explorer.walk(choose).violation for _ in range(HISTORIES))
