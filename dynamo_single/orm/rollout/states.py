"""The form of a table's items, as values: the keys, rules and attributes of every item.

One item in each table contains it: the *state item*. Migrations write it, and all code follows it. A *form* describes
how the items of one model are written and read. Each key, unique rule and new attribute of it is *absent* (no code
writes it), *written* (all code writes it, no code reads it) or *public*. This module does not send requests or depend
on models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import ForeignTable, UnexpectedItem
from dynamo_single.orm.requests.actions import ItemKey
from dynamo_single.orm.schema.keys.shards import SCHEME, Entry
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.orm.schema.upgrades import FIRST
from dynamo_single.table import names

#: The behavior of code for a part of an item. ``absent`` is recorded only for parts that a migration has announced.
Facet = Literal["absent", "written", "public"]
ABSENT: Final[Facet] = "absent"
WRITTEN: Final[Facet] = "written"
PUBLIC: Final[Facet] = "public"

#: The key of the state item; what else migrations keep in the table has the same partition key.
STATE_KEY: Final[ItemKey] = (names.MIGRATIONS, "#STATE")
STATE_TYPE: Final = "MigrationState"
#: The beginning of the sort keys of presence items.
PROCESS: Final = "PROCESS#"
#: The templates of all keys that migrations write: the state, applied migrations, the progress of a migration's work,
#: and the processes that use the table.
KEYS: Final = (
    STATE_KEY,
    (names.MIGRATIONS, "APPLIED#{any}"),
    (names.MIGRATIONS, "WORK#{any}"),
    (names.MIGRATIONS, f"{PROCESS}{{any}}"),
)


def partition_of(settings: TableSettings) -> str:
    """Return the partition key of the items of migrations of a table, which may be in its companion.

    Raises ``ConfigurationError`` if the table is not the app's and has no companion.
    """
    return f"{settings.own_prefix}{names.MIGRATIONS}"


def state_key(settings: TableSettings) -> ItemKey:
    """Return the key of the state item of a table, as ``partition_of()``."""
    return partition_of(settings), STATE_KEY[1]


class OpenChange(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A change of stored items that has begun and has not ended.

    ``phase`` is its place in the phases of its kind of change, in which it is since the revision ``since``.
    ``is_reverted`` means that it goes back to the first. ``is_former`` means that an earlier release started it. Items
    may then have values under both physical names before and after a conversion.
    """

    kind: str
    migration: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    phase: int = 0
    is_reverted: bool = False
    since: int = 0
    is_former: bool = False

    @property
    def number(self) -> int:
        """The number of the operation in its migration."""
        return int(self.parameters["number"])


class KeyTemplates(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A key on an index as code can write it that does not declare it; ``stored`` are its variables' physical names.

    ``condition`` limits the items in the index, and ``conditioned`` lists its variables: see ``IndexCondition``.
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
        """Return the facets of a declared key; ``stored`` has the physical name of each attribute."""
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


class Rename(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A physical name of a renamed attribute, with the ``old`` name.

    - phase 0: code reads and writes the old name.
    - phase 1: code reads the old name and writes both.
    - phase 2: code reads the new name and writes both.
    - phase 3: code reads and writes the new name. The pair stays, so that old code that comes back can follow.
    """

    old: str
    phase: int = 0

    @property
    def is_new_read(self) -> bool:
        """Whether code reads the new name."""
        return self.phase > 1

    @property
    def is_double(self) -> bool:
        """Whether code writes both names."""
        return self.phase in (1, 2)


class StoredForm(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The form of one model's items.

    - ``label`` is the model's label, and ``labels`` are those that it had before.
    - ``attributes`` are fingerprints by physical name. Items may lack the ones in ``unfilled``.
    - ``keys`` are facets by fingerprint, of the keys on indexes; ``templates`` say how they are written.
    - ``rules`` are facets by fingerprint, of the unique rules.
    - ``renames`` are by the new physical name.
    - ``synonyms`` are fingerprints of the same thing by other physical names, each with an earlier one.
    - ``required`` are parts that all code has to write, each with the migration that added it.
    - ``changed`` are physical names, unique rules, ``primary`` and ``itemType`` with the last migration that added,
      changed or removed them, for errors.
    - ``squashed`` maps migrations of ``required`` and ``changed`` to the squashed migration that replaces them.
    - ``kept`` are physical names that all code has to write until they are removed.
    - ``paused`` is the migration that converts the items, while no code may use them.
    - ``version`` and ``raised_to`` are of an earlier release: the schema version that every item has at least, and the
      latest. Items of versions in between have to be upgraded.
    """

    label: str
    primary: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Facet] = field(default_factory=dict)
    templates: Mapping[str, KeyTemplates] = field(default_factory=dict)
    renames: Mapping[str, Rename] = field(default_factory=dict)
    rules: Mapping[str, Facet] = field(default_factory=dict)
    unfilled: tuple[str, ...] = ()
    opened: tuple[OpenChange, ...] = ()
    labels: tuple[str, ...] = ()
    synonyms: Mapping[str, str] = field(default_factory=dict)
    required: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)
    squashed: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    paused: str = ""
    version: int = FIRST
    raised_to: int = FIRST

    def canonical(self, fingerprint: str) -> str:
        """Return the earliest fingerprint of the same thing."""
        while (found := self.synonyms.get(fingerprint)) is not None:
            fingerprint = found
        return fingerprint

    def names_of(self, migration: str) -> tuple[str, ...]:
        """Return the name of a migration and the names of the squashed migrations that replace it."""
        found = [migration]
        while (later := self.squashed.get(found[-1])) is not None and later not in found:
            found.append(later)
        return tuple(found)

    def key(self, fingerprint: str) -> Facet | None:
        """Return the facet of a key; ``None`` if it is absent."""
        found = self.keys.get(self.canonical(fingerprint))
        return None if found == ABSENT else found


class StoredShards(Struct, frozen=True, forbid_unknown_fields=True):
    """The shards of one model's items: by which physical attributes they are divided, and the schedule.

    ``scheme`` identifies the hash and the number format.
    """

    attribute: str
    at: str
    entries: tuple[Entry, ...]
    scheme: int = SCHEME


class TableState(Struct, frozen=True):
    """The whole state of a table: the form and the shards of each item type by ``itemType``, and the owner of the
    table.

    - ``moved`` is the revision of the last bump that code has to follow, and ``moved_at`` the server's time before it,
      in epoch seconds.
    - ``lease`` is for how many seconds a process may go by the state without reading it again; 0 for the default.
    - ``fences`` are, by host of the endpoint, how many seconds late a signature may be; 0 where that is not limited.
    - ``fenced_since`` is the first revision that ``migrate`` of this protocol wrote.
    - ``former`` is the text of the forms of an earlier release, until the first change of a form.
    - ``damage`` is why a part of it could not be read, which is empty then.
    """

    revision: int = 0
    owner: str = ""
    forms: Mapping[str, StoredForm] = field(default_factory=dict)
    shards: Mapping[str, StoredShards] = field(default_factory=dict)
    moved: int = 0
    moved_at: float = 0.0
    lease: float = 0.0
    fences: Mapping[str, float] = field(default_factory=dict)
    fenced_since: int = 0
    former: str = ""
    damage: UnexpectedItem | None = None

    def whole(self) -> TableState:
        """Return the same; raise ``UnexpectedItem`` if a part of it could not be read."""
        if self.damage is not None:
            raise self.damage
        return self

    def with_form(self, item_type: str, form: StoredForm | None) -> TableState:
        """Return the state with another form of one item type; ``None`` removes the form."""
        forms = {name: each for name, each in self.forms.items() if name != item_type}
        return replace(self, forms=forms if form is None else {**forms, item_type: form}, former="")


def refuse_foreign(settings: TableSettings, state: TableState) -> None:
    """Raise for the state of a table that another project has marked."""
    own = settings.owner
    if own and state.owner and state.owner != own:
        raise ForeignTable(
            f"The table {settings.table_name!r} at {settings.place} belongs to the project {state.owner!r}, but this "
            f"is the project {own!r}. Nothing was read or written. Use a separate table for this project. If both are "
            f'the same project, set "OWNER": {state.owner!r} in DYNAMO_SINGLE[{settings.alias!r}] of both.'
        )
