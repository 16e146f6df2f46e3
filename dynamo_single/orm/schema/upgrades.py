"""Schema versions: items of an earlier version of their model, and the functions that lead to the present one.

Pure: an item goes in, and the item as the present declaration has it comes out. This module sends nothing, and must
not know attributes or how items are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NoReturn

from msgspec import Struct

from dynamo_single.exceptions import ConfigurationError, DynamoSingleError, InvalidValue, SchemaVersionError
from dynamo_single.orm.schema.keys.values import from_attribute_value, to_attribute_value
from dynamo_single.table import names
from dynamo_single.table.request import Item, NewItem, StoredValue

#: The version of an item that does not say one: it is older than ``Meta.schema_version``.
FIRST: Final = 1
#: Takes the plain values of an item of one version by their stored names, and gives those that the next one changes.
Function = Callable[[dict[str, Any]], Mapping[str, Any]]
#: What a function is not given, and cannot change: where the item is, and of which model and version.
_HIDDEN: Final = frozenset({names.PARTITION_KEY, names.SORT_KEY, names.ITEM_TYPE, names.SCHEMA_VERSION})


class Upgrade:
    """How items of one schema version become those of the next one: ``upgrades = {1: models.Upgrade(...)}``.

    ``function`` takes an item's values by their stored names, as they are stored: texts, whole numbers and ``Decimal``,
    ``bytes``, booleans, lists, maps and sets; of a timestamp it is the number of milliseconds. It gives those that
    change, ``None`` for one to remove. ``changes`` are all stored names that it may give; it has to be pure, since it
    is called each time that such an item is read.
    """

    __slots__ = ("changes", "function")

    def __init__(self, function: Function, *, changes: Collection[str]) -> None:
        if not callable(function):
            raise ConfigurationError(f"models.Upgrade() takes a function of an item's values, not {function!r}.")
        if isinstance(changes, str) or not changes or not all(isinstance(each, str) and each for each in changes):
            raise ConfigurationError(
                f"models.Upgrade(changes=...) lists the stored names that the function may change, not {changes!r}."
            )
        self.function = function
        self.changes = frozenset(changes)

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(getattr(self.function, "__name__", "The function"))


class Upgraded(Struct, frozen=True):
    """An item as the present declaration has it, and the stored names that a function asked for and did not find."""

    item: Item
    missing_names: frozenset[str] = frozenset()


class _Asked(dict[str, Any]):
    """An item's values, which note the names that somebody asked for and did not find: a write depends on them too."""

    def __init__(self, values: Mapping[str, object], asked: set[str]) -> None:
        super().__init__(values)
        self._asked = asked

    def __missing__(self, name: str) -> NoReturn:
        self._asked.add(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self._asked.add(name)
        return super().__contains__(name)

    def get(self, name: str, default: object = None) -> Any:
        self._asked.add(name)
        return super().get(name, default)

    def pop(self, name: str, *default: object) -> Any:
        self._asked.add(name)
        return super().pop(name, *default)

    def setdefault(self, name: str, default: object = None) -> Any:
        self._asked.add(name)
        return super().setdefault(name, default)


class Schema(Struct, frozen=True, eq=False):
    """The schema versions of one model: the present one, and the upgrades by the version that each begins with.

    ``hidden`` are the stored names that no function sees besides the key: those of index keys. ``folds`` are the folded
    copies of texts: stored name, the source's, and what gives the copy of a stored text.
    """

    label: str
    version: int
    upgrades: Mapping[int, Upgrade]
    hidden: frozenset[str] = frozenset()
    folds: tuple[tuple[str, str, Callable[[StoredValue | None], StoredValue | None]], ...] = ()

    @property
    def oldest(self) -> int:
        """The earliest version that is read."""
        return min(self.upgrades, default=self.version)

    @property
    def stored(self) -> StoredValue:
        """The present version as items have it."""
        return {"N": str(self.version)}

    @property
    def changes(self) -> frozenset[str]:
        """The stored names that any upgrade may change, with folded copies of them."""
        return self.changes_since(self.oldest)

    def changes_since(self, version: int) -> frozenset[str]:
        """The stored names that may change between a version and the present one, with folded copies of them."""
        found = {name for start, each in self.upgrades.items() if start >= version for name in each.changes}
        return frozenset(found | {copy for copy, source, _ in self.folds if source in found})

    def is_current(self, item: Item) -> bool:
        """Whether an item is of the present version."""
        return item.get(names.SCHEMA_VERSION) == self.stored

    def is_older(self, item: Item) -> bool:
        """Whether an item is of an earlier version; not one of a newer release, or without a number as its version."""
        try:
            return self._version(item) < self.version
        except SchemaVersionError:
            return False

    def current(self, item: Item) -> Item:
        """An item as the present declaration has it: itself, if it is of that version.

        Raises ``SchemaVersionError`` for an item of a newer version, for one that no upgrade leads on from, and where
        an upgrade fails.
        """
        return item if self.is_current(item) else self.upgraded(item, self.version).item

    def upgraded(self, item: Item, to: int) -> Upgraded:
        """An item of an earlier version as a later one has it; errors as ``current()``."""
        version = self._version(item)
        if version > self.version:
            raise SchemaVersionError(
                f"{self._named(item)} was written at schema version {version}, and this code has version "
                f"{self.version}: it would lose what newer code has written. Deploy the newer code."
            )
        asked: set[str] = set()
        values = self._values(item)
        found: NewItem = {name: dict(value) for name, value in item.items()}
        for start in range(version, to):
            upgrade = self.upgrades.get(start)
            if upgrade is None:
                raise SchemaVersionError(
                    f"{self._named(item)} is of schema version {version}, and no upgrade begins at version {start}: "
                    f"there are those from {', '.join(map(str, sorted(self.upgrades))) or 'none'} on. Put it back into "
                    "Meta.upgrades; it may go once migrate --finish has ended an UpgradeItems."
                )
            given = self._given(upgrade, values, asked, item, start)
            for name, value in given.items():
                values.pop(name, None)
                found.pop(name, None)
                if value is not None:
                    values[name] = value
                    found[name] = self._stored(name, value, item, start)
        for copy, source, fold in self.folds:
            found.pop(copy, None)
            folded = fold(found.get(source))
            found |= {} if folded is None else {copy: dict(folded)}
        found[names.SCHEMA_VERSION] = {"N": str(to)}
        return Upgraded(found, frozenset(asked - item.keys()))

    def _values(self, item: Item) -> dict[str, object]:
        hidden = _HIDDEN | self.hidden
        return {name: from_attribute_value(value) for name, value in item.items() if name not in hidden}

    def _given(
        self, upgrade: Upgrade, values: dict[str, object], asked: set[str], item: Item, start: int
    ) -> dict[str, object]:
        """What a function gives; whatever goes wrong with it is named with the item."""
        where = f"{self._named(item)}: the upgrade from schema version {start}, {upgrade.name}(),"
        try:
            given = upgrade.function(_Asked(values, asked))
            if not isinstance(given, Mapping):
                raise SchemaVersionError(f"{where} gives no values by name, but {type(given).__name__}.")
        except DynamoSingleError:
            raise
        except Exception as error:  # of a project's function
            raise SchemaVersionError(f"{where} raised {type(error).__name__}: {error}") from error
        if unknown := sorted(map(str, given.keys() - upgrade.changes)):
            raise SchemaVersionError(
                f"{where} changes {', '.join(unknown)}, and declares changes of "
                f"{', '.join(sorted(upgrade.changes))} only. Add it to changes=[...]."
            )
        return dict(given)

    def _stored(self, name: str, value: object, item: Item, start: int) -> dict[str, object]:
        try:
            return dict(to_attribute_value(value, path=name))
        except InvalidValue as error:
            raise SchemaVersionError(
                f"{self._named(item)}: the upgrade from schema version {start}: {error}"
            ) from error

    def _version(self, item: Item) -> int:
        found = item.get(names.SCHEMA_VERSION)
        if found is None:
            return FIRST
        try:
            return int(found["N"])
        except (KeyError, ValueError) as error:
            raise SchemaVersionError(f"{self._named(item)} has no number as its schema version: {found!r}.") from error

    def _named(self, item: Item) -> str:
        keys = (item.get(name, {}).get("S") for name in (names.PARTITION_KEY, names.SORT_KEY))
        return f"{self.label}, the item {' / '.join(str(key) for key in keys if key is not None) or 'without a key'}"


def checked_upgrades(name: str, version: object, upgrades: object) -> dict[int, Upgrade]:
    """The upgrades that a ``Meta`` declares; raises ``ConfigurationError`` for a chain that is not whole."""
    given = {} if upgrades is None else upgrades
    if version is None and given:
        raise ConfigurationError(f"{name}.Meta.upgrades has no effect without Meta.schema_version: give that too.")
    if version is not None and (type(version) is not int or version < FIRST):
        raise ConfigurationError(f"{name}.Meta.schema_version is a whole number from 1 on, not {version!r}.")
    if not isinstance(given, Mapping) or not all(isinstance(each, Upgrade) for each in given.values()):
        raise ConfigurationError(
            f"{name}.Meta.upgrades is a dict such as {{1: models.Upgrade(function, changes=[...])}}."
        )
    if not given or type(version) is not int:
        return {}
    if not all(type(start) is int and FIRST <= start < version for start in given):
        raise ConfigurationError(
            f"{name}.Meta.upgrades has upgrades from {', '.join(map(repr, given))}; they begin at versions from 1 to "
            f"{version - 1}, as schema_version is {version}."
        )
    missing = [start for start in range(min(given), version) if start not in given]
    if missing:
        raise ConfigurationError(
            f"{name}.Meta.upgrades has no function from version {missing[0]} to {missing[0] + 1}: items of version "
            f"{min(given)} have no way to version {version}. Write it, or leave out those below if a migration has "
            "upgraded all items (UpgradeItems)."
        )
    return {start: given[start] for start in sorted(given)}
