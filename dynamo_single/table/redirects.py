"""Test tables that stand in for the tables which the settings name, and the guard that requests pass meanwhile.

Both belong to the process, not to a thread: what a test starts must not get past them. Child processes take over the
test tables by an environment variable. Outside of tests this module holds nothing. It must not know Django's tests.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple, replace

from dynamo_single.conf import KeyForm, TableSettings
from dynamo_single.exceptions import ConfigurationError

#: JSON: the test tables of the process that started this one.
VARIABLE: Final = "DYNAMO_SINGLE_TEST_TABLES"

#: Asked before a request is sent; it raises where a test must not send one.
Guard = Callable[[TableSettings], None]


class Place(Struct, frozen=True):
    """Which table: where it is, its name, and its key."""

    endpoint_url: str | None
    region: str
    name: str
    key: KeyForm = "pk"

    @classmethod
    def of(cls, settings: TableSettings) -> Place:
        """The place of a table."""
        return cls(settings.endpoint_url, settings.region, settings.table_name, settings.key)

    def settings(self, like: TableSettings) -> TableSettings:
        """The settings of the table at this place, in all else those of another one; it is charged by the request."""
        return replace(
            like,
            endpoint_url=self.endpoint_url,
            region=self.region,
            table_name=self.name,
            key=self.key,
            billing_mode="PAY_PER_REQUEST",
            read_capacity=None,
            write_capacity=None,
        )


class _State(Struct):
    stand_ins: Mapping[Place, Place]
    guard: Guard | None = None


def _inherited() -> dict[Place, Place]:
    """What the process that started this one has set up; only tables on this machine are accepted."""
    text = os.environ.get(VARIABLE)
    if not text:
        return {}
    try:
        found = {Place(*declared): Place(*stand_in) for declared, stand_in in json.loads(text)}
        local = all(each.settings(TableSettings("", "")).is_local for each in found.values())
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The environment variable {VARIABLE} cannot be read; remove it.") from error
    if not local:
        raise ConfigurationError(f"The environment variable {VARIABLE} names a table that is not on this machine.")
    return found


def stand_in_for(settings: TableSettings) -> TableSettings:
    """The settings of the test table that stands in for a table, or the same settings where none does."""
    found = state.stand_ins.get(Place.of(settings)) if state.stand_ins else None
    return settings if found is None else found.settings(settings)


def is_stand_in(settings: TableSettings) -> bool:
    """Whether the settings are those of a test table in use."""
    return Place.of(settings) in state.stand_ins.values()


def put_in(stand_ins: Mapping[TableSettings, TableSettings]) -> None:
    """From now on the second table of each pair stands in for the first, here and in processes started from here."""
    state.stand_ins = {Place.of(declared): Place.of(found) for declared, found in stand_ins.items()}
    if not state.stand_ins:
        os.environ.pop(VARIABLE, None)
        return
    pairs = [[astuple(declared), astuple(found)] for declared, found in state.stand_ins.items()]
    os.environ[VARIABLE] = json.dumps(pairs)


state: Final = _State(_inherited())
