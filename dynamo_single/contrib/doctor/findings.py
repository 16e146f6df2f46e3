"""The input and the results of checks: subjects, findings, and the conditions of a repair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from dynamo_single.conf import table_settings
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.effects.recount import CountTarget
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.requests.actions import ITEM_MISSING, Action, Check, Item, ItemKey, as_read, key_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.translated import Sentence

FindingKind = Literal[
    "unknown item",
    "record without type",
    "unreadable item",
    "primary key",
    "shard of a spelling",
    "half index key",
    "index key",
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
    "edge of nobody",
    "child of nobody",
    "refers to nobody",
    "left in the trash",
]

#: Other items by their keys; one that is not stored, or has expired, is not among them.
Others = Mapping[ItemKey, Item]


class Recount(Struct, frozen=True):
    """A number that is to be counted again, and the ``pk`` of the object that has it."""

    counting: CountTarget
    pk: object


class Removal(Struct, frozen=True):
    """An object that belongs to nobody: its item as it was read, and what it belonged to.

    ``gone`` are the keys of that, each with the condition that nothing is there; ``parents`` are its models.
    """

    model: Any
    item: Item
    gone: Mapping[ItemKey, Condition]
    parents: tuple[type[DynamoModel], ...]


class Finding(Struct, frozen=True):
    """Something that is not as it should be: the ``key`` of the item, a sentence, and what would repair it.

    ``repair`` is one transaction, held to what was read; ``recount`` a number that is counted again in the place of
    that, and ``removal`` an object that is deleted with what follows from it. There is none where somebody has to
    decide.
    """

    kind: FindingKind
    key: ItemKey
    said: Sentence
    repair: tuple[Action, ...] = ()
    recount: Recount | None = None
    removal: Removal | None = None

    @property
    def is_repairable(self) -> bool:
        """Whether nobody has to decide."""
        return bool(self.repair) or self.recount is not None or self.removal is not None

    @property
    def text(self) -> str:
        """The sentence in English."""
        return str(self.said)

    def __str__(self) -> str:
        """One line."""
        return f"{self.kind}: {self.key[0]} / {self.key[1]}: {self.text}"


class Subject(Struct, frozen=True):
    """A stored item that has not expired, the alias of its table, and its model; ``None`` if none has its type.

    Most checks are made of items with a model alone, so that its type is open.
    """

    alias: str
    item: Item
    model: Any

    @classmethod
    def of(cls, alias: str, item: Item) -> Subject:
        """The item with its model."""
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
    def is_older(self) -> bool:
        """Whether the item is of an earlier schema version than its model's."""
        schema = None if self.model is None else registry.layout_of(self.model).schema
        return schema is not None and schema.is_older(self.item)

    @property
    def waits(self) -> frozenset[str]:
        """The physical names of what is as it was then in an item of an earlier schema version."""
        schema = None if self.model is None else registry.layout_of(self.model).schema
        return frozenset() if schema is None or schema.is_current(self.item) else schema.changes

    @property
    def is_claim(self) -> bool:
        """Whether the item is a claim."""
        return self.item.get(names.ITEM_TYPE, {}).get("S") == names.CLAIM_ITEM_TYPE


def _model_of_untyped(alias: str, item: Item) -> type[DynamoModel] | None:
    """The model of an item without a type, which a record of a table whose key is ``id`` may have been written as.

    Its identifier says which record it is.
    """
    if table_settings(alias).key == "pk" or names.SORT_KEY not in item:
        return None
    sort = item[names.SORT_KEY]["S"]
    of_table = (model for model in registry.all_models() if model._options.alias == alias)
    return next((each for each in of_table if registry.layout_of(each).primary.sort.source == sort), None)


class Checks(Protocol):
    """What a module of checks has."""

    def wanted(self, subject: Subject, others: Others) -> Iterable[ItemKey]:
        """The keys of other items to look at; asked again with those that were found, until nothing new is named."""

    def findings(self, subject: Subject, others: Others) -> Iterator[Finding]:
        """What is wrong with the item."""


def unchanged_condition(item: Item, stored: Iterable[str]) -> Check:
    """Lets a repair pass only while an item is as it was read, as far as what follows from it is concerned."""
    return Check(key_of(item), as_read(item, (*stored, names.ITEM_TYPE, names.DELETED_AT, names.EXPIRES_AT)))


def missing_or_unchanged(key: ItemKey, item: Item | None, stored: Iterable[str]) -> Check:
    """The same of an item that may not have been there."""
    return Check(key, ITEM_MISSING) if item is None else unchanged_condition(item, stored)


def unexpired_items(items: Iterable[Item]) -> dict[ItemKey, Item]:
    """The items that have not expired, by key."""
    return {key_of(item): item for item in items if not has_expired(item)}
