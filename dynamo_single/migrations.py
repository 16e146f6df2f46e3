"""The public names of migration files: ``from dynamo_single import migrations as items``.

This is a module rather than a package, because Django would treat a package as this app's migrations.
"""

from dynamo_single.evolution.autodetector import Autodetector
from dynamo_single.evolution.commands import MakemigrationsMixin, MigrateMixin
from dynamo_single.evolution.operations.attributes import (
    AddAttribute,
    AlterAttribute,
    Extract,
    RemoveAttribute,
    RenameAttribute,
)
from dynamo_single.evolution.operations.items import ChangeItems, RenamedLabels
from dynamo_single.evolution.operations.keys import AddKey, AlterKey, RemoveKey, RenameKey
from dynamo_single.evolution.operations.models import AddModel, AlterTrashIndex, MoveKeys, RemoveModel, RenameModel
from dynamo_single.evolution.operations.shards import ChangeShards
from dynamo_single.evolution.operations.unique import AddUnique, RemoveUnique
from dynamo_single.evolution.operations.versions import RaiseSchemaVersion, UpgradeItems
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.stored_attributes import StoredAttribute, UniqueRule

__all__ = [
    "AddAttribute",
    "AddKey",
    "AddModel",
    "AddUnique",
    "AlterAttribute",
    "AlterKey",
    "AlterTrashIndex",
    "Autodetector",
    "ChangeItems",
    "ChangeShards",
    "Extract",
    "MakemigrationsMixin",
    "MigrateMixin",
    "MoveKeys",
    "RaiseSchemaVersion",
    "RemoveAttribute",
    "RemoveKey",
    "RemoveModel",
    "RemoveUnique",
    "RenameAttribute",
    "RenameKey",
    "RenameModel",
    "RenamedLabels",
    "Snapshot",
    "StoredAttribute",
    "UniqueRule",
    "UpgradeItems",
]
