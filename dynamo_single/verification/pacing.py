"""Requests to one table at a pace, so that looking through it leaves capacity for others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from dynamo_single.table.listeners import SentRequest, listening
from dynamo_single.table.pace import Rate
from dynamo_single.table.table import Table


class Paced(Struct):
    """The requests of one walk through a table, at its pace."""

    table: Table
    rate: Rate

    @property
    def alias(self) -> str:
        """The table's alias."""
        return self.table.settings.alias

    def paced(self, work: Callable[..., object], *given: object) -> Any:
        """Return the result of requests, after as long a pause as they have to be followed by."""

        def note(request: SentRequest) -> None:
            self.rate.count(request.consumed)

        with listening(note):
            result = work(*given)
        # A sleep of no length still gives up the processor, for each item.
        if pause := self.rate.pause():
            time.sleep(pause)
        return result
