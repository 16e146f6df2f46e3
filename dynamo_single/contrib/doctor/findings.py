"""The input and the results of checks: subjects, findings, and the conditions of a repair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from dynamo_single.conf import table_settings
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.effects.counters import CountTarget
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.requests.actions import ITEM_MISSING, Action, Check, Item, ItemKey, as_read, key_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.translated import Sentence

FindingKind = Literal[
    "unknown item",
    "record without type",
    "unreadable item",
    "primary key",
    "shard of a spelling",
    "half index key",
    "index key",
    "attribute left over",
    "live key in the trash",
    "canonical copy",
    "extracted value",
    "orphan claim",
    "missing claim",
    "claim of another",
    "value held twice",
    "claim's expiry",
    "missing derived item",
    "derived item",
    "derived item left over",
    "copy",
    "copies due",
    "move due",
    "counter",
    "edge without end",
    "child without parent",
    "reference to a missing object",
    "left in the trash",
]

#: Other items by their keys, except for missing and expired ones.
Others = Mapping[ItemKey, Item]


class Recount(Struct, frozen=True):
    """A number to count again, and the ``pk`` of the object that has it."""

    counting: CountTarget
    pk: object


class Removal(Struct, frozen=True):
    """An orphan: its item as it was read, and the objects that it belonged to.

    ``gone`` contains the keys of those objects, each with the condition that it is free; ``parents`` contains their
    models.
    """

    model: Any
    item: Item
    gone: Mapping[ItemKey, Condition]
    parents: tuple[type[DynamoModel], ...]


class Finding(Struct, frozen=True):
    """An inconsistency: the ``key`` of the item, a sentence, and the repair.

    ``repair`` is one transaction that is conditional on what was read. ``recount`` is a number to count again instead,
    and ``removal`` an object to delete with its dependent items. A finding without any of them needs a decision.
    """

    kind: FindingKind
    key: ItemKey
    said: Sentence
    repair: tuple[Action, ...] = ()
    recount: Recount | None = None
    removal: Removal | None = None

    @property
    def is_repairable(self) -> bool:
        """Whether the finding can be repaired without a decision."""
        return bool(self.repair) or self.recount is not None or self.removal is not None

    @property
    def text(self) -> str:
        """The sentence in English."""
        return str(self.said)

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.kind}: {self.key[0]} / {self.key[1]}: {self.text}"


class Subject(Struct, frozen=True):
    """A stored item that has not expired, the alias of its table, and its model, or ``None`` for an unknown type.

    Most checks handle only items with a model, so that ``model`` is typed as ``Any``.
    """

    alias: str
    item: Item
    model: Any

    @classmethod
    def of(cls, alias: str, item: Item) -> Subject:
        """Return the item with its model."""
        item_type = item.get(names.ITEM_TYPE, {}).get("S")
        return cls(
            alias,
            item,
            _model_of_untyped(alias, item) if item_type is None else registry.model_of_type(alias, item_type),
        )

    @property
    def key(self) -> ItemKey:
        """The item's key."""
        return key_of(self.item)

    @property
    def is_claim(self) -> bool:
        """Whether the item is a claim."""
        return self.item.get(names.ITEM_TYPE, {}).get("S") == names.CLAIM_ITEM_TYPE


def _model_of_untyped(alias: str, item: Item) -> type[DynamoModel] | None:
    """Return the model of an item without a type, which may be a record in a table whose key is ``id``.

    The prefix of its identifier determines the model.
    """
    if table_settings(alias).key == "pk" or names.SORT_KEY not in item:
        return None
    sort = item[names.SORT_KEY]["S"]
    of_table = (model for model in registry.all_models() if model._options.alias == alias)
    return next((each for each in of_table if registry.layout_of(each).primary.sort.source == sort), None)


class Checks(Protocol):
    """A module of checks."""

    def wanted(self, subject: Subject, others: Others) -> Iterable[ItemKey]:
        """Return the keys of other items to read. Called again with the found ones until there are no new keys."""

    def findings(self, subject: Subject, others: Others) -> Iterator[Finding]:
        """Yield the errors of the item."""


def unchanged_condition(item: Item, stored: Iterable[str]) -> Check:
    """Return the check that an item is unchanged in everything that its dependent items are built from."""
    return Check(key_of(item), as_read(item, (*stored, names.ITEM_TYPE, names.DELETED_AT, names.EXPIRES_AT)))


def missing_or_unchanged(key: ItemKey, item: Item | None, stored: Iterable[str]) -> Check:
    """Return the check that an item is unchanged, or that it is still missing."""
    return Check(key, ITEM_MISSING) if item is None else unchanged_condition(item, stored)


def unexpired_items(items: Iterable[Item]) -> dict[ItemKey, Item]:
    """Return the items that have not expired, by key."""
    return {key_of(item): item for item in items if not has_expired(item)}
