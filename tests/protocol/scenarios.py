"""The explored cases: each kind of ``phases.KINDS``, combined changes, and processes with faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynamo_single.evolution.phases import KINDS, Phases
from tests.protocol.machine import Rules, Scenario
from tests.protocol.meaning import AFTER, CHANGE_SHARDS, Change, Meaning, Vector, meaning
from tests.protocol.stored import Operation

SET, CREATE = Operation("set", 0, 10), Operation("create", 1, 20)
SAVE, DELETE, PUT = Operation("save", 0, 30), Operation("delete", 0), Operation("put", 0, 40)
ADD = Operation("add", 0)
#: Two kinds of writes, and all of them.
FEW, ALL = (SET, CREATE), (SET, CREATE, SAVE, DELETE, PUT)
NUMBERS = (ADD, SET, SAVE)
#: Values of a rule that two items want, and references to an object with a number.
CLAIMED = (Operation("set", 0, 1), Operation("set", 0, 2), Operation("create", 1, 1), DELETE)
COUNTED = (CREATE, DELETE, Operation("delete", 1))

#: All tables by name: the project's own, and that of shards, for which no item is rewritten.
TABLES: dict[str, Phases] = {**KINDS, "CHANGE_SHARDS": CHANGE_SHARDS}


def refuses_those_without(phases: Phases) -> bool:
    """Return whether code without a value is blocked while it is stored: only then may it be computed."""
    change = Change(phases)
    lacking = ("after", "before")[change.owner]
    return all(phase.refused in (lacking, "everybody") for phase in phases if phase.parts)


def changes_of(name: str) -> Iterator[tuple[str, Change]]:
    """Yield the change of a table, and its variants: a computed value, a key that goes to another index."""
    phases = TABLES[name]
    change = Change(phases)
    yield name, change
    if change.aspect == "value" and refuses_those_without(phases):
        yield f"{name}, computed", change._replace(is_derived=True)
    if name == "ALTER_KEY":  # AlterTrashIndex
        yield f"{name}, another index", change._replace(indexes=(0, 1))


KINDS_OF_CHANGES = {title: change for name in TABLES for title, change in changes_of(name)}


def workload(change: Change, *, few: bool) -> tuple[Operation, ...]:
    """Return the writes with which a change is explored."""
    special = {"claims": CLAIMED, "number": COUNTED, "schedule": (CREATE, PUT)}
    return special.get(change.aspect, FEW if few else ALL)


def rename(old: int, new: int) -> Change:
    """Return a rename between two names."""
    return Change(KINDS["RENAME"], names=(old, new))


#: Changes that are open together.
TOGETHER: dict[str, tuple[Change, ...]] = {
    "a rename, and one of the new name": (rename(0, 1), rename(1, 2)),
    "a rename and a new key": (rename(0, 1), Change(KINDS["ADD_KEY"])),
    "a rename and a computed value": (rename(0, 1), Change(KINDS["ADD_VALUE"], is_derived=True)),
    "a new key and a removed one": (
        Change(KINDS["ADD_KEY"], indexes=(1, 1)),
        Change(KINDS["REMOVE_KEY"], indexes=(0, 0)),
    ),
    "a rename and an altered key": (rename(0, 1), Change(KINDS["ALTER_KEY"])),
}


def early(changes: Sequence[Change], vector: Vector, code: int) -> Meaning | None:
    """Return the behavior of code that writes a new value, number or claim before the required phase.

    New code also does this once it has the attribute or the rule.
    """
    found = meaning(changes, vector, code)
    own = {each.aspect: each for each in changes if code == each.owner == AFTER}
    if found is None or not own:
        return found
    value = "derived" if "value" in own and own["value"].is_derived else "stored" if "value" in own else found.value
    return found._replace(value=value, claims=found.claims or "claims" in own, counts=found.counts or "number" in own)


def removing(changes: Sequence[Change], vector: Vector, code: int) -> Meaning | None:
    """Return the behavior of code that removes an absent name from its writes, like code that knows both."""
    found = meaning(changes, vector, code)
    names = {name for each in changes if each.aspect == "names" for name in each.names}
    return found and found._replace(removes=tuple(sorted(names.difference(found.writes))))


#: Optional behavior of code, only forwards, since early values remain after a revert.
EARLY = ("ADD_VALUE", "ADD_VALUE, computed", "ADD_NUMBER", "ADD_UNIQUE")

ALTERED, RENAMED = (Change(KINDS["ALTER_KEY"]),), (rename(0, 1),)


def processes(name: str, changes: tuple[Change, ...], operations: tuple[Operation, ...] = FEW) -> Iterator[Scenario]:
    """Yield what can go wrong for the processes of a change, one thing in each scenario."""
    plain = Scenario(name, changes, operations, turns=0)
    by_time = any(each.aspect == "schedule" for each in changes)
    yield plain._replace(name=f"{name}: no presence item can be written", lease=2, short=1)
    if not by_time:  # an entry begins at a time: a stopped process without the fence may still write by the earlier one
        yield plain._replace(name=f"{name}: no fence", unfenced=0)
    yield plain._replace(name=f"{name}: responses are lost", unanswered=True)
    yield plain._replace(name=f"{name}: clocks differ", operations=operations[:1], rules=Rules(skew=1, margin=1))
    yield plain._replace(name=f"{name}: presence items expire", expiring=True)
    yield plain._replace(name=f"{name}: two commands", turns=int(not by_time), commands=True)
    if any(each.aspect == "keys" for each in changes):
        yield plain._replace(name=f"{name}: the index lags", delayed=True)


def left_out(rule: str, scenario: Scenario) -> Scenario:
    """Return a scenario without one rule."""
    return scenario._replace(name=f"without {rule}", rules=scenario.rules._replace(**{rule: False}))


def without_rules() -> Iterator[Scenario]:
    """Yield a scenario for each rule, without which a history is wrong."""
    altered = Scenario("", ALTERED, FEW, turns=0)
    renamed = Scenario("", RENAMED, FEW, turns=0)
    for rule in ("fence", "dates_stay"):
        yield left_out(rule, altered)
        yield left_out(rule, renamed)
    for rule in (
        "registers_first",
        "answers_when_older_ended",
        "closes_older_first",
        "waits_before_bump",
        "waits_before_first_bump",
        "waits_before_pass",
    ):
        yield left_out(rule, altered)
    yield left_out("answers_when_older_ended", altered._replace(rules=Rules(fence=False)))
    yield left_out("waits_before_pass", altered._replace(changes=(Change(KINDS["ADD_KEY"]),)))
    yield left_out("waits_at_least", altered._replace(lease=2, short=1))
    yield left_out("waits_for_unfenced", altered._replace(unfenced=0))
    yield left_out("says_unfenced", altered._replace(unfenced=0))
    yield left_out("unknown_stays_unknown", altered._replace(unanswered=True))
    yield left_out("waits_for_unanswered", altered._replace(unanswered=True))
    yield left_out("notices_expiry", altered._replace(expiring=True))
    yield left_out("forgets_only_older", altered)
    yield left_out("keeps_its_date", altered._replace(unanswered=True))
    yield left_out("waits_for_commands", altered._replace(turns=1, commands=True))
    paused = (Change(KINDS["PAUSE"]),)
    yield left_out("turns_by_bump", altered._replace(changes=paused, turns=1, commands=True))
    yield left_out("drops_needless", altered._replace(changes=(Change(KINDS["ADD_UNIQUE"]),), operations=CLAIMED))
    yield left_out("counts_under_mark", altered._replace(changes=(Change(KINDS["ADD_NUMBER"]),), operations=COUNTED))
    shards = altered._replace(changes=(Change(CHANGE_SHARDS),), operations=(CREATE, PUT))
    yield left_out("allows_for_the_future", shards)
    yield altered._replace(name="without margin", rules=Rules(skew=1, margin=0))
