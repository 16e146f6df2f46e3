"""Read the presence items of a table's processes, and wait until no process goes by an earlier revision.

The presence item of a process records the revision that the process uses. The command waits for a process that does not
respond until its lease has ended by the server's clock. After that, DynamoDB rejects the requests of the process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dynamo_single.evolution.migrate_run import Run
from dynamo_single.exceptions import ConditionFailed
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.rollout import knowledge, presence
from dynamo_single.orm.rollout.states import PROCESS, TableState, partition_of
from dynamo_single.table import names
from dynamo_single.table.flow import run
from dynamo_single.table.lease import MARGIN
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

#: The margin at a local endpoint, which uses the same clock as the processes: ``Date`` has whole seconds.
LOCAL_MARGIN: Final = 1.0
#: Seconds between two reads of the presence items.
POLL: Final = 1.0
LOCAL_POLL: Final = 0.2


@dataclass(frozen=True)
class Process:
    """A process, as recorded in its presence item. ``code`` contains the last migration of each of its apps."""

    key: str
    heard: int
    under_way: int
    is_unfenced: bool
    code: Mapping[str, str]
    started: int
    said: int

    @classmethod
    def of(cls, item: Item) -> Process:
        """Return the process of an item."""

        def number(name: str) -> int:
            return int(item[name]["N"]) if name in item else 0

        code: Mapping[str, Any] = item[presence.CODE]["M"] if presence.CODE in item else {}
        return cls(
            item[names.SORT_KEY]["S"],
            number(presence.HEARD),
            number(presence.UNDER_WAY),
            bool(number(presence.UNFENCED)),
            {app: each["S"] for app, each in code.items()},
            number(presence.STARTED),
            number(presence.SAID),
        )

    def goes_by(self, revision: int) -> bool:
        """Return whether it goes by a revision or a later one, with no request of an earlier one under way."""
        return self.heard >= revision and self.under_way >= revision

    def knows(self, app_label: str, migration: str) -> bool:
        """Return whether its code has a migration, or a later one of the app."""
        return self.code.get(app_label, "") >= migration

    def lacks(self, migrations: Iterable[str]) -> str:
        """Return the first of some migrations that its code does not have, or an empty string."""
        return next((each for each in sorted(migrations) if not self.knows(*each.split(".", 1))), "")

    def describe(self, now: float) -> str:
        """Return the host, the process id, and the times of the start and of the last response."""
        host, pid, *_ = self.key.removeprefix(PROCESS).split("#")
        silent, started = max(0.0, now - self.said), max(0.0, now - self.started)
        return f"{host} pid {pid} (started {started:.0f} s ago, last seen {silent:.0f} s ago)"


def processes(table: Table) -> tuple[list[Process], float]:
    """Return the processes that use a table, and the server's time: one Query for each megabyte of presence items."""
    params: dict[str, Any] = {
        "KeyConditionExpression": "#pk = :pk AND begins_with(#sk, :process)",
        "ExpressionAttributeNames": {"#pk": names.PARTITION_KEY, "#sk": names.SORT_KEY},
        "ExpressionAttributeValues": {":pk": {"S": partition_of(table.settings)}, ":process": {"S": PROCESS}},
        "ConsistentRead": True,
    }
    found: list[Process] = []
    own = knowledge.own_process(table)
    while True:
        answer, served_at = run(table.ask_dated(Request("Query", params)))
        found += (Process.of(item) for item in answer["Items"] if item[names.SORT_KEY]["S"] != own)
        if not (start := answer.get("LastEvaluatedKey")):
            return found, served_at if served_at is not None else time.time()
        params = {**params, "ExclusiveStartKey": start}


@dataclass(frozen=True)
class Barrier:
    """The end of the time in which processes may go by a revision before ``revision``.

    ``starts`` is the server's time by which the table had the revision.
    """

    table: Table
    state: TableState
    revision: int
    starts: float

    @property
    def margin(self) -> float:
        """The seconds after a lease during which a late request can still be executed."""
        return LOCAL_MARGIN if self.table.settings.is_local else MARGIN

    @property
    def ends(self) -> float:
        """The server's time at which all leases of earlier revisions are over."""
        return self.starts + knowledge.lease_of(self.table, self.state) + self.margin

    @property
    def earliest(self) -> float:
        """The server's time until which processes without a presence item may use an earlier revision.

        A local endpoint has no access rights, so every process can write its presence item there.
        """
        return 0.0 if self.table.settings.is_local else self.starts + knowledge.UNREGISTERED_LEASE + self.margin

    def wait(self, this: Run) -> bool:
        """Wait until all processes use the revision; return ``False`` if that takes time and the run must not wait.

        Reports a process that does not respond until its lease is over, and deletes its presence item. Waits for a
        process that sends requests without the fence until it responds or ends, unless the run is forced.
        """
        told: set[str] = set()
        is_first = True
        begun = time.monotonic()
        while True:
            found, now = processes(self.table)
            late = [each for each in found if not each.goes_by(self.revision)]
            if not late and now >= self.earliest:
                if told:
                    this.say(f"    all {len(found)} processes go by it ({time.monotonic() - begun:.1f} s)")
                return True
            is_over = now >= self.ends
            has_fence = knowledge.fence_of(self.table, self.state) is not None
            kept = [each for each in late if has_fence and each.is_unfenced and not this.forced]
            forgotten = "it is forgotten" + (", and its late requests are rejected" if has_fence else "")
            if is_over and is_first and not kept:
                return True  # there was no process to wait for
            is_first = False
            if is_over and not kept:
                # The former requests of a process that uses the revision can no longer be executed.
                for each in (each for each in late if each.heard < self.revision):
                    this.say(f"    {each.describe(now)} does not respond: {forgotten}")
                    self._forget(each)
                return True
            if not this.waits:
                return False
            for each in (each for each in late if each.key not in told):
                told.add(each.key)
                more = (
                    ", which sends requests without the fence: end it, or repeat with --force" if each in kept else ""
                )
                this.say(f"    waiting for {each.describe(now)}{more}")
            this.wait(LOCAL_POLL if self.table.settings.is_local else POLL)

    def _forget(self, process: Process) -> None:
        """Delete a presence item unless the process has responded in the meantime."""
        key = item_key((partition_of(self.table.settings), process.key))
        params = {
            "Key": key,
            "ConditionExpression": "#heard = :heard AND #unfenced = :unfenced",
            "ExpressionAttributeNames": {"#heard": presence.HEARD, "#unfenced": presence.UNFENCED},
            "ExpressionAttributeValues": {
                ":heard": {"N": str(process.heard)},
                ":unfenced": {"N": str(int(process.is_unfenced))},
            },
        }
        with suppress(ConditionFailed):
            self.table.send(Request("DeleteItem", params))
