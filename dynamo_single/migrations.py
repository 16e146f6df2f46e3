"""The public names of migration files: ``from dynamo_single import migrations as items``.

A file and no package, which Django would take for the migrations of this app.
"""

from dynamo_single.item_migrations.rules import UniqueRule
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.item_migrations.stored import StoredAttribute

__all__ = ["Snapshot", "StoredAttribute", "UniqueRule"]
