"""Processes, the command and time: every step of one history.

A process reads the state, reports its revision in its presence item, prepares requests with a binding, and sends them.
It can pause for any time in between, and a crash is a process without further steps. Each process has threads: it may
use a new revision while an older request runs.

Clients' clocks do not matter. A lease is the time for which the server accepts its date; a tick is the length of a
lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.protocol.meaning import Change, Meaning, Vector, meaning, schedule
from tests.protocol.stored import Operation


class Rules(NamedTuple):
    """The rules of the protocol. A test leaves one out and expects a violation.

    ``skew`` is by how many ticks the clocks of the server's hosts differ, ``margin`` how many the command adds.
    """

    fence: bool = True
    dates_stay: bool = True
    registers_first: bool = True
    answers_when_older_ended: bool = True
    closes_older_first: bool = True
    waits_before_bump: bool = True
    waits_before_first_bump: bool = True
    waits_before_pass: bool = True
    waits_at_least: bool = True
    waits_for_unfenced: bool = True
    says_unfenced: bool = True
    unknown_stays_unknown: bool = True
    allows_for_the_future: bool = True
    forgets_silent: bool = True
    waits_for_commands: bool = True
    turns_by_bump: bool = True
    waits_for_unanswered: bool = True
    notices_expiry: bool = True
    forgets_only_older: bool = True
    keeps_its_date: bool = True
    drops_needless: bool = True
    counts_under_mark: bool = True
    skew: int = 0
    margin: int = 0


class Scenario(NamedTuple):
    """The explored case. Options enable features that make histories longer.

    ``lease`` and ``short`` are the leases in ticks of processes with and without a presence item; without ``short``,
    all can write theirs. ``unanswered``: responses are lost. ``unfenced``: the process with this number may lose the
    fence. ``expiring``: DynamoDB deletes the items of processes that were silent for days. ``delayed``: the indexes
    show a write later. ``turns`` is the maximum number of stopped runs, one of which may reverse. ``commands``: a run
    may stop with a running write of its pass, while another one takes over. ``meant`` derives the behavior of code from
    a revision.
    """

    name: str
    changes: tuple[Change, ...]
    operations: tuple[Operation, ...]
    codes: tuple[int, ...] = (0, 1)
    budget: int = 1
    rules: Rules = Rules()
    lease: int = 1
    short: int = 0
    unanswered: bool = False
    unfenced: int = -1
    expiring: bool = False
    delayed: bool = False
    turns: int = 1
    commands: bool = False
    meant: Callable[[Sequence[Change], Vector, int], Meaning | None] = meaning


class Pending(NamedTuple):
    """A request under way.

    ``lost``: an attempt got no response, and was not executed (1) or was executed (2), or may still arrive (3),
    although the process has given it up.
    """

    operation: Operation
    revision: int
    lease: int
    lost: int = 0


class Process(NamedTuple):
    """One process. ``item`` is its presence item's revision, -1 before its first report, ``None`` without an item.

    ``said`` is the revision that it remembers to have written there, although the item may have expired. ``is_clear``:
    the item reports no older requests. ``hand`` is a state that it has not used yet. ``fence``: "yes", "no" (as its
    item says), "secret" (unlike its item), or "ended".
    """

    believes: bool = False
    item: int | None = None
    said: int = -1
    is_clear: bool = False
    bound: int = -1
    lease: int = 0
    hand: tuple[int, int] | None = None
    pending: Pending | None = None
    budget: int = 1
    fence: str = "yes"
    is_repeated: bool = False


class Node(NamedTuple):
    """A position of the command, which the next node follows. ``turn`` is the start of a run in the other direction."""

    kind: str
    revision: int
    turn: int = -1
    change: int = 0
    work: str = ""


class Write(NamedTuple):
    """A write of a stopped run's pass: its node, the item, the value it has read, and its lease."""

    node: int
    at: int
    seen: object
    lease: int


class Command(NamedTuple):
    """The command: its node, how far a pass is, what it has read, and for how long leases of before may last.

    ``late`` is a write of an earlier run.
    """

    node: int = 0
    at: int = 0
    seen: object = None
    timer: int = 0
    is_new: bool = False
    late: Write | None = None


class Plan:
    """The nodes of all runs, with a number for each revision.

    A run that is stopped in a phase can be reverted from there, and a reverting one can go forward again. It starts
    with the passes of the current phase in its own direction, after a bump that only announces it: the earlier run's
    writes are over then.
    """

    def __init__(self, changes: Sequence[Change], turns: int, turns_by_bump: bool = True) -> None:
        self.changes = tuple(changes)
        self.turns_by_bump = turns_by_bump
        self.nodes: list[Node] = []
        self.vectors: list[Vector] = []
        self.chain = schedule(changes)
        self.vectors.append(self.chain[0])
        self._run(0, 0, 1, turns)

    def _run(self, place: int, revision: int, way: int, turns: int) -> None:
        """Add the nodes of a run from a place of the chain, forward (1) or back (-1), and of runs that turn."""
        turning = []
        while 0 <= place + way < len(self.chain):
            self.nodes += [Node("wait", revision, work="bump"), Node("bump", revision)]
            place += way
            self.vectors.append(self.chain[place])
            revision = len(self.vectors) - 1
            begun = len(self.nodes)
            self._section(place, revision, way)
            turning.append((begun, len(self.nodes), place, revision))
        self.nodes.append(Node("end", revision))
        for begun, following, place, revision in turning if turns else []:
            for number in range(begun, following + 1):
                self.nodes[number] = self.nodes[number]._replace(turn=len(self.nodes))
            if self.turns_by_bump:
                self.nodes.append(Node("bump", revision))
                self.vectors.append(self.chain[place])
                revision = len(self.vectors) - 1
            self._section(place, revision, -way)
            self._run(place, revision, -way, turns - 1)

    def _section(self, place: int, revision: int, way: int) -> None:
        """Add the wait and the passes of a phase, of the changes that have come to it on this way."""
        now = self.chain[place]
        before = self.chain[place - way] if 0 <= place - way < len(self.chain) else None
        work = [
            (n, name)
            for n, change in enumerate(self.changes)
            if before is None or before[n] != now[n]
            for name in (change.phases[now[n]].passes if way > 0 else change.phases[now[n]].back)
        ]
        self.nodes += [Node("wait", revision, work="pass")] if work else []
        self.nodes += [Node("pass", revision, change=n, work=name) for n, name in work]
