"""Operations on the schema version of a model: raise it, and upgrade all items to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db.migrations.operations.base import OperationCategory

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.rewrite import upgrade_items
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.stored_attributes import StoredAttribute
from dynamo_single.exceptions import ConfigurationError


@public
class RaiseSchemaVersion(ItemsOperation):
    """Raise ``Meta.schema_version``. Items are upgraded when they are read; nothing is written now.

    ``changes`` contains the physical names that the upgrades may change, and ``attributes`` those of the model's
    attributes among them that are new or stored differently. Queries by these attributes raise ``KeyNotFilled`` until
    ``UpgradeItems`` is finished. The operation cannot be reverted, because items of the new version may exist.
    """

    category = OperationCategory.ALTERATION
    reversible = False

    def __init__(
        self,
        model_name: str,
        to: int,
        changes: Sequence[str] = (),
        attributes: Mapping[str, StoredAttribute] | None = None,
    ) -> None:
        self.model_name, self.to, self.changes = model_name, to, list(changes)
        self.attributes = dict(attributes or {})

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot with the version, and with the attributes of its items."""
        pending = tuple(sorted({*before.pending, *self.changes}))
        attributes = {**before.attributes, **self.attributes}
        return replace(before, schema_version=self.to, attributes=attributes, pending=pending)

    def hint(self) -> str:
        """Return the hint that ``UpgradeItems`` exists."""
        return (
            f"{self.model_name}: stored items stay as they are, and a filter by what the upgrades change is "
            f"KeyNotFilled. To rewrite all of them, now or ever, write UpgradeItems({self.model_name!r}, to={self.to}) "
            "into a later migration."
        )

    def describe(self) -> str:
        return f"Raise schema version of {self.model_name} to {self.to}: items are upgraded when they are read"

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name_lower}_version_{self.to}"


@public
class UpgradeItems(ItemsOperation):
    """Upgrade every item of an earlier schema version with the functions in ``Meta.upgrades``.

    After ``migrate --finish``, queries may use the attributes that the upgrades change, and those functions can be
    removed. ``to`` is the schema version of the migrations before this one.
    """

    category = OperationCategory.PYTHON

    def __init__(self, model_name: str, to: int) -> None:
        self.model_name, self.to = model_name, to

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot without items of earlier versions."""
        if before.schema_version != self.to:
            raise ConfigurationError(
                f"UpgradeItems of {self.model_name} goes to schema version {self.to}, and the migrations before it "
                f"have version {before.schema_version}."
            )
        return replace(before, oldest_version=self.to, pending=())

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Upgrade the items."""
        return (upgrade_items(after),)

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Upgrade the items that old code has written in the meantime."""
        return self.open_tasks(before, after)

    def describe(self) -> str:
        return f"Upgrade items of {self.model_name} to schema version {self.to}"

    @property
    def migration_name_fragment(self) -> str:
        return f"upgrade_{self.model_name_lower}_{self.to}"
