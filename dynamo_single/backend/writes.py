"""The writes to DynamoDB within one transaction of Django's: when it rolls back they stay, and that is reported.

What is seen are the writes of the transaction's own context, with those of the threads that it waits for. Counting them
sends nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from dynamo_single.exceptions import ConfigurationError, NotRolledBack, NotRolledBackWarning
from dynamo_single.table.listeners import SentRequest, listen, unlisten

#: The option of ``DATABASES`` that says whether a rollback after writes is a warning or an error.
OPTION = "rollback_after_writes"
#: The operations that write.
WRITES = frozenset({"BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"})


class Writes:
    """How many writes one connection's transaction has seen, and how many there were at each of its savepoints."""

    def __init__(self, alias: str, settings: Mapping[str, Any]) -> None:
        self._alias = alias
        self._settings = settings
        self._seen: list[str] = []
        self._marks: dict[str, int] = {}

    def check_options(self) -> None:
        """Raise ``ConfigurationError`` for an option that there is not, or a value that it does not take."""
        options = self._settings.get("OPTIONS") or {}
        if options.keys() - {OPTION} or options.get(OPTION, "warn") not in ("warn", "error"):
            raise ConfigurationError(
                f"DATABASES[{self._alias!r}]['OPTIONS'] is {options!r}: the engine dynamo_single.backend has the "
                f"option {OPTION!r}, which is 'warn' or 'error'."
            )

    def start(self) -> None:
        """Begin to count."""
        self._seen.clear()
        self._marks.clear()
        listen(self._note)

    def stop(self) -> None:
        """Count no more."""
        unlisten(self._note)

    def forget(self) -> None:
        """Report none of the writes until now: they are undone."""
        self._seen.clear()

    def mark(self, sid: str) -> None:
        """Record how many there are at a savepoint."""
        self._marks[sid] = len(self._seen)

    def report(self, sid: str | None = None) -> None:
        """Warn of the writes since a savepoint, or since the beginning, or raise; each of them once."""
        before = 0 if sid is None else self._marks.get(sid, 0)
        written = self._seen[before:]
        del self._seen[before:]
        if not written:
            return
        message = (
            f"transaction.atomic() has rolled back after {len(written)} writes to DynamoDB ({', '.join(written[:3])}"
            f"{', ...' if len(written) > 3 else ''}), which stay written: Django's transactions are about SQL. What "
            "has to be written together, or not at all, belongs into dynamo_single.transactions.atomic()."
        )
        if (self._settings.get("OPTIONS") or {}).get(OPTION) == "error":
            raise NotRolledBack(message)
        warnings.warn(message, NotRolledBackWarning, stacklevel=4)

    def _note(self, sent: SentRequest) -> None:
        if sent.operation in WRITES and not sent.error:
            self._seen.append(sent.operation)
