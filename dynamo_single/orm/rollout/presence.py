"""The presence item of a process: which revision of a table's state it goes by.

The command ``migrate`` reads the presence items to end its waits early and to name processes. Safety does not depend on
them: the lease limits the wait for a process without a response.
"""

from __future__ import annotations

import atexit
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from dynamo_single.exceptions import AccessDenied, BeginAgain, ConditionFailed, DynamoSingleError, Throttled
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.rollout.states import PROCESS, partition_of
from dynamo_single.table import names
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

logger = logging.getLogger("dynamo_single.migrations")

ITEM_TYPE: Final = "Process"
#: How long DynamoDB keeps the item of a killed process, and how often a living one writes it again, in seconds.
KEPT: Final = 2 * 24 * 3600
REWRITTEN: Final = 24 * 3600

# The attributes of a presence item.
HEARD: Final = "heard"
UNDER_WAY: Final = "underWay"
CODE: Final = "code"
STARTED: Final = "started"
SAID: Final = "said"
UNFENCED: Final = "unfenced"


class Presence:
    """This process's presence item in one table: an UpdateItem to begin and for each revision, a DeleteItem at its end.

    If the item cannot be written (a role that may only read, leading keys, throttling), the process ``is_refused`` and
    works with short leases.
    """

    def __init__(self, code: Mapping[str, str]) -> None:
        self.pid = os.getpid()
        self.key = f"{PROCESS}{socket.gethostname()}#{self.pid}#{uuid.uuid4().hex[:8]}"
        self.is_refused = False
        #: Whether it has recorded that its requests are dated by the deadline of their lease; ``None`` before that.
        self.is_fenced: bool | None = None
        self._code = {"M": {app: {"S": name} for app, name in code.items()}}
        self._started = int(time.time())
        self._written_at: float | None = None
        self._ends: Any = None
        self._lock = threading.Lock()

    @property
    def is_of_another_process(self) -> bool:
        """Return whether this process was forked from the process that the item names."""
        return self.pid != os.getpid()

    def register(self, table: Table, *, is_blind: bool = False) -> None:
        """Write the item unless it was written in the last day. It must precede the reading of the state.

        A process that ``is_blind`` never reads the state.
        """
        with self._lock:
            if self._written_at is not None and time.time() < self._written_at + REWRITTEN:
                return
            self._write(table, {HEARD: -1, UNDER_WAY: -1, UNFENCED: int(is_blind)}, is_new=True)
        if self._ends is None and not self.is_refused:
            self._ends = atexit.register(self.end, table)

    def say(self, table: Table, revision: int, under_way: int, *, is_fenced: bool) -> bool:
        """Record that the process uses a revision from now on; ``under_way`` is the oldest revision of its open
        requests.

        Return ``False`` if the item was taken away: the process was silent for too long, and has to begin again.
        """
        if self.is_refused:
            return True
        numbers = {HEARD: revision, UNDER_WAY: under_way, UNFENCED: 0 if is_fenced else 1}
        try:
            self._write(table, numbers, is_new=False)
        except ConditionFailed:
            self._written_at = None
            return False
        self.is_fenced = is_fenced
        return True

    def _write(self, table: Table, numbers: Mapping[str, int], *, is_new: bool) -> None:
        now = int(time.time())
        values: dict[str, Any] = {
            names.ITEM_TYPE: {"S": ITEM_TYPE},
            CODE: self._code,
            STARTED: {"N": str(self._started)},
            SAID: {"N": str(now)},
            names.EXPIRES_AT: {"N": str(now + KEPT)},
            **{name: {"N": str(number)} for name, number in numbers.items()},
        }
        marks = {f"#{number}": name for number, name in enumerate(values)}
        params: dict[str, Any] = {
            "Key": item_key((partition_of(table.settings), self.key)),
            "UpdateExpression": "SET " + ", ".join(f"{mark} = :{mark[1:]}" for mark in marks),
            "ExpressionAttributeNames": dict(marks),
            "ExpressionAttributeValues": {f":{mark[1:]}": values[name] for mark, name in marks.items()},
        }
        if not is_new:
            params["ConditionExpression"] = "attribute_exists(#key)"
            params["ExpressionAttributeNames"]["#key"] = names.PARTITION_KEY
        try:
            table.send(Request("UpdateItem", params))
        except (AccessDenied, Throttled) as error:
            self.is_refused = True
            logger.warning(
                "This process cannot write its presence item in the table %r: %s It continues with leases of 2 "
                "seconds, and reads the state of the table every second.",
                *(table.name, error),
            )
            return
        if is_new:
            self._written_at = time.time()

    def end(self, table: Table) -> None:
        """Delete the item, so that no migration waits for this process."""
        if self.is_of_another_process or self._written_at is None:
            return
        self._written_at = None
        key = item_key((partition_of(table.settings), self.key))
        with suppress(DynamoSingleError, BeginAgain, RuntimeError):
            table.send(Request("DeleteItem", {"Key": key}))
