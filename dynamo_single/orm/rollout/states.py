"""What a table says of the form of its items, as values: which keys, rules and attributes every item has.

One item a table holds it, written by migrations only. This module sends nothing and must not know models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from msgspec import DecodeError, Struct, ValidationError, field, json
from msgspec.structs import replace

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import ForeignTable, UnexpectedItem
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fingerprints import attribute_fingerprint, key_fingerprints
from dynamo_single.orm.schema.keys.shards import SCHEME, Entry
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout
from dynamo_single.orm.schema.upgrades import FIRST
from dynamo_single.table import names

#: ``open``: a migration is filling it, or has not begun to. ``filled``: every item has it. ``going``: every item had it
#: when it was last written; a migration is about to take it away.
Phase = Literal["open", "filled", "going"]

#: The key of the state item; what else migrations keep in the table has the same partition key.
STATE_KEY: Final[ItemKey] = (names.MIGRATIONS, "#STATE")
STATE_TYPE: Final = "MigrationState"
#: The templates of all keys that migrations write: the state, what is applied, and where a migration's work is.
KEYS: Final = (STATE_KEY, (names.MIGRATIONS, "APPLIED#{any}"), (names.MIGRATIONS, "WORK#{any}"))

REVISION: Final = "revision"
_OWNER: Final = "owner"
_FORMS: Final = "forms"
_SHARDS: Final = "shards"


class OpenChange(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of stored items that has begun and is not finished; ``parameters`` are what its kind needs."""

    kind: str
    migration: str
    parameters: Mapping[str, str] = field(default_factory=dict)


class KeyTemplates(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A key on an index as code can write it that does not declare it; ``stored`` are its variables' physical names.

    ``condition`` says which items are in the index, and ``conditioned`` of which variables: see ``IndexCondition``.
    """

    index: str
    partition: str
    sort: str
    stored: Mapping[str, str] = field(default_factory=dict)
    sharded: bool = False
    condition: str = ""
    conditioned: tuple[str, ...] = ()

    @classmethod
    def of(cls, key: AccessKey, stored: Mapping[str, str]) -> KeyTemplates:
        """Those of a declared key; ``stored`` has the physical name of each attribute."""
        condition = key.condition
        found = cls(
            key.index or "",
            key.partition.source,
            key.sort.source,
            {name: stored[name] for name in key.named_attributes},
            key.sharding is not None,
        )
        if condition is None:
            return found
        return replace(found, condition=condition.text, conditioned=condition.attributes)


class Rename(Struct, frozen=True, forbid_unknown_fields=True):
    """A physical name of an attribute that is becoming another one: the ``old`` one, and how far it is.

    ``open``: old code has the old name, so new code reads that and writes both. ``filled``: new code reads the new name
    and writes both. ``going``: it writes the new name alone, and takes the old one out of what it writes.
    """

    old: str
    phase: Phase = "open"


class StoredForm(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The form of one model's items: fingerprints, and for what may be missing in some items its phase.

    ``schema_version`` and ``raised_to`` are of an earlier release: the version that every item has at least, and the
    latest. Items of versions in between have to be upgraded.

    ``attributes`` are by physical name; those ``unfilled`` may lack their default. ``keys`` and ``rules`` are phases by
    fingerprint, of the keys on indexes and of the unique rules. ``templates`` say how the keys are written. ``renames``
    are by the new physical name.
    """

    label: str
    primary: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Phase] = field(default_factory=dict)
    templates: Mapping[str, KeyTemplates] = field(default_factory=dict)
    renames: Mapping[str, Rename] = field(default_factory=dict)
    rules: Mapping[str, Phase] = field(default_factory=dict)
    unfilled: tuple[str, ...] = ()
    opened: tuple[OpenChange, ...] = ()
    schema_version: int = FIRST
    raised_to: int = FIRST


class StoredShards(Struct, frozen=True, forbid_unknown_fields=True):
    """The shards of one model's items: by which physical attributes they are divided, and the schedule.

    ``scheme`` says which hash and which form of numbers is meant.
    """

    attribute: str
    at: str
    entries: tuple[Entry, ...]
    scheme: int = SCHEME


class TableState(Struct, frozen=True):
    """All that a table says: the form and the shards of each type of items by ``itemType``, and whose the table is.

    ``damage`` is why a part of it could not be read, which is empty then.
    """

    revision: int = 0
    owner: str = ""
    forms: Mapping[str, StoredForm] = field(default_factory=dict)
    shards: Mapping[str, StoredShards] = field(default_factory=dict)
    damage: UnexpectedItem | None = None

    def whole(self) -> TableState:
        """Return the same; raise ``UnexpectedItem`` if a part of it could not be read."""
        if self.damage is not None:
            raise self.damage
        return self

    def with_form(self, item_type: str, form: StoredForm | None) -> TableState:
        """The same with one type's form; ``None`` for a type that has none any more."""
        forms = {name: each for name, each in self.forms.items() if name != item_type}
        return replace(self, forms=forms if form is None else {**forms, item_type: form})


def read_state(item: Item) -> TableState:
    """Return the state that an item holds, with its ``damage`` if a part of it cannot be read.

    Raises ``UnexpectedItem`` if a later release has written the shards: no item may be read without them.
    """
    readers: dict[str, Callable[[], object]] = {
        "revision": lambda: int(item[REVISION]["N"]),
        "owner": lambda: item[_OWNER]["S"] if _OWNER in item else "",
        "forms": lambda: json.decode(item[_FORMS]["S"], type=dict[str, StoredForm]),
        "shards": lambda: json.decode(item[_SHARDS]["S"] if _SHARDS in item else "{}", type=dict[str, StoredShards]),
    }
    found: dict[str, Any] = {}
    damage: UnexpectedItem | None = None
    for name, reader in readers.items():
        try:
            found[name] = reader()
        except (KeyError, ValueError, DecodeError) as error:
            damage = UnexpectedItem(
                f"The item {STATE_KEY[0]} / {STATE_KEY[1]} does not say in a known way what the table holds: {name}: "
                f"{error!r}. A later release of dynamo_single may have written it: use that release. If it is damaged, "
                "restore this item from a backup of the table."
            )
            if name == _SHARDS and isinstance(error, ValidationError):
                raise damage from error
    return TableState(**found, damage=damage)


def state_item(state: TableState) -> dict[str, dict[str, Any]]:
    """The item that holds a state."""
    return {
        names.PARTITION_KEY: {"S": STATE_KEY[0]},
        names.SORT_KEY: {"S": STATE_KEY[1]},
        names.ITEM_TYPE: {"S": STATE_TYPE},
        REVISION: {"N": str(state.revision)},
        **({_OWNER: {"S": state.owner}} if state.owner else {}),
        _FORMS: {"S": json.encode(state.forms, order="deterministic").decode()},
        **({_SHARDS: {"S": json.encode(state.shards, order="deterministic").decode()}} if state.shards else {}),
    }


def refuse_foreign(settings: TableSettings, state: TableState) -> None:
    """Raise for the state of a table that another project has marked."""
    own = settings.owner
    if own and state.owner and state.owner != own:
        raise ForeignTable(
            f"The table {settings.table_name!r} at {settings.place} belongs to the project {state.owner!r}, and this "
            f"one is {own!r}. Nothing was read or written. Give this project a table of its own; or, if the two are "
            f'one project, say so in both: "OWNER": {state.owner!r} in DYNAMO_SINGLE[{settings.alias!r}].'
        )


# The form of items that a model's code stands for: what a table is told once every item has it.


def form_of(layout: ModelLayout, rules: Iterable[str] = ()) -> StoredForm:
    """The form in which a model is stored, with every key filled, and the unique rules of these fingerprints.

    The rules are an effect of writes, which this floor does not know: ``orm/items/unique_rules`` has them.
    """
    keys = key_fingerprints(layout)
    stored = {name: info.stored for name, info in layout.attributes.items()}
    attributes = registry.attributes_of(registry.model_of(layout))
    return StoredForm(
        label=layout.label.lower(),
        primary=keys["primary"],
        attributes={stored[name]: attribute_fingerprint(each, layout) for name, each in attributes.items()},
        keys={keys[key.name]: "filled" for key in layout.index_keys},
        templates={keys[key.name]: KeyTemplates.of(key, stored) for key in layout.index_keys},
        rules=dict.fromkeys(rules, "filled"),
    )
