"""The table of pairs: which capabilities, ways to write and ways to read there are, and the pairs that are not.

All pairs have to work, except those that a check rejects. ``python -m tests.contract.pairs.page`` writes the page
``docs/reference/pairs.md`` from this table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import ModuleType

from msgspec import Struct

from dynamo_single.exceptions import ConfigurationError
from tests.contract.pairs import capabilities, edges, relations, values
from tests.contract.pairs.oracle import Capability
from tests.contract.pairs.readers import READERS
from tests.contract.pairs.writers import WRITERS

Pair = tuple[str, str]


def rows_in(module: ModuleType) -> Iterator[type[Capability]]:
    """The rows of a module."""
    for found in vars(module).values():
        is_row = isinstance(found, type) and issubclass(found, Capability) and bool(found.title)
        if is_row and found.__module__ == module.__name__:
            yield found


#: Every capability by its name.
CAPABILITIES: dict[str, type[Capability]] = {
    row.__name__: row for module in (capabilities, relations, edges, values) for row in rows_in(module)
}


class Refusal(Struct, frozen=True):
    """A pair that cannot be declared: the check, or the error of the class, and the alternative.

    ``instead`` contains the capabilities of a model that follows the message, which must work.
    """

    first: str
    second: str
    by: str
    message: str
    instead: tuple[str, ...]


REFUSED: tuple[Refusal, ...] = (
    Refusal("purged", "expiry", ConfigurationError.__name__, "an item expires at one time only", ("expiry",)),
    Refusal("purged", "counters", "E016", "Count them when it is needed", ("purged", "children")),
    Refusal("expiry", "counters", "E016", "Count them when it is needed", ("expiry", "children")),
    Refusal("purged", "checked", "E030", "Remove checked=True", ("purged", "protect")),
    Refusal("expiry", "checked", "E030", "Remove checked=True", ("expiry", "protect")),
    Refusal("purged", "many_to_many", "E030", "Declare a model of the edges", ("purged", "through")),
    Refusal("expiry", "many_to_many", "E030", "Declare a model of the edges", ("expiry", "through")),
    Refusal("sharded_primary", "many_to_many", "E024", "keys on indexes alone", ("shards", "many_to_many")),
    Refusal("sharded_primary", "derived", "E024", "keys on indexes alone", ("shards", "derived")),
    Refusal("sharded_primary", "derived_expiring", "E024", "keys on indexes alone", ("shards", "derived_expiring")),
    Refusal("expiry", "derived", "E037", "Declare expires = models.TTLAttribute", ("expiry", "derived_expiring")),
    Refusal("purged", "followed", "E030", "on_delete", ("purged", "through")),
    Refusal("expiry", "followed", "E030", "on_delete", ("expiry", "through")),
    Refusal("sharded_primary", "followed", "E024", "keys on indexes alone", ("shards", "followed")),
    Refusal("set_null", "nested", "E030", "would change a reference that is immutable", ("cascade", "nested")),
    Refusal("set_default", "nested", "E030", "would change a reference that is immutable", ("cascade", "nested")),
)


#: Two capabilities, one of which includes the other.
SAME = frozenset(
    {
        frozenset({"soft_delete", "purged"}),
        frozenset({"soft_delete", "record"}),
        frozenset({"shards", "sharded_primary"}),
        frozenset({"derived", "derived_expiring"}),
        frozenset({"many_to_many", "through"}),
        frozenset({"children", "counters"}),
        frozenset({"soft_delete", "family_trash"}),
        frozenset({"parent_trash", "family_trash"}),
    }
)


def pairs() -> Iterator[Pair]:
    """All pairs of two capabilities that are to work."""
    refused = {frozenset({each.first, each.second}) for each in REFUSED}
    for first, second in itertools.combinations(CAPABILITIES, 2):
        if frozenset({first, second}) not in refused | SAME:
            yield first, second


def written() -> Iterator[Pair]:
    """All pairs of a capability and a way to write."""
    return itertools.product(CAPABILITIES, WRITERS)


def readers_of(names: tuple[str, ...]) -> list[str]:
    """The ways to read models with these capabilities."""
    return [name for name, reader in READERS.items() if reader.needs <= {*names}]
