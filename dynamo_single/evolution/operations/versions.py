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
    """A later ``Meta.schema_version``: items are upgraded when they are read, and nothing is written now.

    ``changes`` are the physical names that the upgrades to it may change, and ``attributes`` those of the model's
    attributes among them that are new or stored otherwise. What is asked by these is refused until ``UpgradeItems`` is
    finished. It does not go back: items of the new version may be there.
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
        """With the version, and with the attributes that items of it have."""
        pending = tuple(sorted({*before.pending, *self.changes}))
        attributes = {**before.attributes, **self.attributes}
        return replace(before, schema_version=self.to, attributes=attributes, pending=pending)

    def hint(self) -> str:
        """Another operation that the project may want."""
        return (
            f"{self.model_name}: stored items stay as they are, and a filter by what the upgrades change is "
            f"KeyNotFilled. To rewrite all of them, now or ever, write UpgradeItems({self.model_name!r}, to={self.to}) "
            "into a later migration."
        )

    def describe(self) -> str:
        """In one line."""
        return f"Raise schema version of {self.model_name} to {self.to}: items are upgraded when they are read"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"{self.model_name_lower}_version_{self.to}"


@public
class UpgradeItems(ItemsOperation):
    """Bring every item of an earlier schema version to this one, by the functions in ``Meta.upgrades``.

    Once it is finished, what the upgrades change is asked for as anything else, and those functions may go. ``to`` is
    the version that the migrations before it have.
    """

    category = OperationCategory.PYTHON

    def __init__(self, model_name: str, to: int) -> None:
        self.model_name, self.to = model_name, to

    def changed(self, before: Snapshot) -> Snapshot:
        """Without items of earlier versions."""
        if before.schema_version != self.to:
            raise ConfigurationError(
                f"UpgradeItems of {self.model_name} goes to schema version {self.to}, and the migrations before it "
                f"have version {before.schema_version}."
            )
        return replace(before, oldest_version=self.to, pending=())

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Upgrade what there is."""
        return (upgrade_items(after),)

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Upgrade what old code has written meanwhile."""
        return self.open_tasks(before, after)

    def describe(self) -> str:
        """In one line."""
        return f"Upgrade items of {self.model_name} to schema version {self.to}"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"upgrade_{self.model_name_lower}_{self.to}"
