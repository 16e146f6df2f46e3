"""The names of attributes and keys in stored items, each defined once.

Changing a name changes the stored layout, which is public API.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

# The names that the settings of a table can replace; see ``conf/shapes``.
from dynamo_single.conf.shapes import EXPIRES_AT as EXPIRES_AT
from dynamo_single.conf.shapes import ID as ID
from dynamo_single.conf.shapes import ITEM_TYPE as ITEM_TYPE
from dynamo_single.conf.shapes import PARTITION_KEY as PARTITION_KEY
from dynamo_single.conf.shapes import SORT_KEY as SORT_KEY

CREATED_AT = "createdAt"
UPDATED_AT = "updatedAt"
DELETED_AT = "deletedAt"
DELETED_WITH = "deletedWith"
#: How many items in an index moved to the trash with this item and are still there; see ``trash_counts``.
DELETED_ALONG = "deletedAlong"
CREATED_BY = "createdBy"
VERSION = "version"
#: The schema version of an item that an earlier release wrote; see ``UpgradeItems``.
SCHEMA_VERSION = "schemaVersion"
#: The copies of an item's attributes that have not been updated after a change.
COPIES_DUE = "copiesDue"
#: The identity of an object before it moved, until all references to it are updated.
MOVED_FROM = "movedFrom"
#: Set while a migration counts the references to an item, and removed by any update of the item's counters.
COUNTING = "counting"
#: The prefix of the counters of references to an item, one for each checked reference.
REFERRED_PREFIX = "refs:"

#: The attributes of a unique claim that contain the key of the item with the value.
CLAIM_ITEM_TYPE = "UniqueClaim"
CLAIM_OWNER_PARTITION = "ownerPk"
CLAIM_OWNER_SORT = "ownerSk"

#: The partition of the items of migrations, and the type of the progress of a backfill.
MIGRATIONS = "MIGRATIONS"
CHECKPOINT_ITEM_TYPE = "MigrationCheckpoint"
#: The type of the item of an applied migration, and the attribute with the time.
MIGRATION_ITEM_TYPE = "Migration"
APPLIED_AT = "appliedAt"

TRASH_PREFIX = "TRASH"
UNIQUE_PREFIX = "UNIQUE"
#: The prefix of the partition with the admin's history of one object, followed by the model's label and the pk.
LOG_OF_OBJECT = "LOG#OBJECT"


def _key_names(index: str | None) -> tuple[str, str]:
    return (PARTITION_KEY, SORT_KEY) if index is None else (f"{index}pk", f"{index}sk")


#: The attributes with the partition key and the sort key of an index, ``gs1pk`` and ``gs1sk`` of ``gs1``, or of the
#: table if it is ``None``.
key_names: Callable[[str | None], tuple[str, str]] = cache(_key_names)
