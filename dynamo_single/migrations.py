"""The public names of migration files: ``from dynamo_single import migrations as items``.

A file and no package, which Django would take for the migrations of this app.
"""

from dynamo_single.item_migrations.autodetector import Autodetector
from dynamo_single.item_migrations.commands import MakemigrationsMixin, MigrateMixin
from dynamo_single.item_migrations.operations.attributes import (
    AddAttribute,
    AlterAttribute,
    RemoveAttribute,
    RenameAttribute,
)
from dynamo_single.item_migrations.operations.extraction import Extract
from dynamo_single.item_migrations.operations.items import ChangeItems
from dynamo_single.item_migrations.operations.keys import AddKey, AlterKey, RemoveKey, RenameKey
from dynamo_single.item_migrations.operations.models import (
    AddModel,
    AlterTrashIndex,
    MoveKeys,
    RemoveModel,
    RenameModel,
)
from dynamo_single.item_migrations.operations.shards import ChangeShards
from dynamo_single.item_migrations.operations.unique import AddUnique, RemoveUnique
from dynamo_single.item_migrations.operations.versions import RaiseSchemaVersion, UpgradeItems
from dynamo_single.item_migrations.rules import UniqueRule
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.item_migrations.stored import StoredAttribute

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
    "Snapshot",
    "StoredAttribute",
    "UniqueRule",
    "UpgradeItems",
]
