"""Operations on schema versions, which items of an earlier release have: raise them, and upgrade all items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db.migrations.operations.base import OperationCategory

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.project_functions import Upgrades, upgrade_items
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.operations.items import ChangeItems
from dynamo_single.evolution.phases import Pass
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.stored_attributes import StoredAttribute
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.upgrades import FIRST


@public
class RaiseSchemaVersion(ItemsOperation):
    """Record that items may be of a later schema version. ``makemigrations`` of an earlier release wrote it.

    Nothing is written to items. Code raises ``FormNotApplied`` until a later ``UpgradeItems`` is finished.
    ``attributes`` contains the model's attributes that are new or stored differently since then; ``changes`` contains
    their physical names. The operation cannot be reverted, because items of the later version may exist.
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

    def describe(self) -> str:
        return f"Raise schema version of {self.model_name} to {self.to}"

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name_lower}_version_{self.to}"


@public
class UpgradeItems(ChangeItems):
    """Upgrade every item of an earlier schema version by functions, as ``ChangeItems`` with ``repeat=True``.

    ``to`` is the schema version of the migrations before this operation. ``upgrades`` contains the function from each
    earlier version to the next: ``{1: function, 2: function}``. A function accepts an item's stored values by physical
    name: strings, integers and ``Decimal``, ``bytes``, booleans, lists, maps and sets. A timestamp is the number of its
    units. The function returns the values to change, or ``None`` to remove a value. It must be pure: it runs again for
    an item that another process changed in the meantime. The operation updates index keys, folded copies and claims.

    Without functions, the operation passes a table without older items, and reports each older item as an error.
    """

    reversible = True

    def __init__(self, model_name: str, to: int, upgrades: Upgrades | None = None) -> None:
        self.model_name, self.to = model_name, to
        self.upgrades = _checked(model_name, to, upgrades or {})
        self.repeat, self.reverse, self.only_declares = True, None, not self.upgrades

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot without items of earlier versions."""
        if before.schema_version != self.to:
            raise ConfigurationError(
                f"UpgradeItems of {self.model_name} goes to schema version {self.to}, and the migrations before it "
                f"have version {before.schema_version}."
            )
        return replace(before, oldest_version=self.to, pending=())

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Upgrade the items."""
        return {"fill": (upgrade_items(after, self.model_name, self.upgrades),)}

    def describe(self) -> str:
        return f"Upgrade items of {self.model_name} to schema version {self.to}"

    @property
    def migration_name_fragment(self) -> str:
        return f"upgrade_{self.model_name_lower}_{self.to}"


def _checked(name: str, to: int, upgrades: Upgrades) -> Upgrades:
    """Return the functions; raise ``ConfigurationError`` unless one leads from each version to the next."""
    starts = sorted(upgrades)
    if (
        not all(map(callable, upgrades.values()))
        or starts != [*range(min(starts, default=to), to)]
        or min(starts, default=FIRST) < FIRST
    ):
        raise ConfigurationError(
            f"UpgradeItems of {name} to schema version {to} has functions from {', '.join(map(repr, starts))}. Give it "
            f"one from each version up to {to - 1}: upgrades={{{to - 1}: function}}."
        )
    return dict(upgrades)
