"""The physical names in a stored item, each defined once.

This module knows strings only. Changing one of them changes the stored layout, which is public API.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

PARTITION_KEY = "pk"
SORT_KEY = "sk"
#: The whole key of a table whose ``KEY`` is ``id``; see ``table/id_tables``.
ID = "id"
ITEM_TYPE = "itemType"
CREATED_AT = "createdAt"
UPDATED_AT = "updatedAt"
DELETED_AT = "deletedAt"
DELETED_WITH = "deletedWith"
#: How many items that an index lists went to the trash with this one and are still there; see ``trash_counts``.
DELETED_ALONG = "deletedAlong"
CREATED_BY = "createdBy"
EXPIRES_AT = "expiresAt"
VERSION = "version"
#: The version of the model's declaration that wrote the item; see ``Meta.schema_version``.
SCHEMA_VERSION = "schemaVersion"
#: Names the copies of an item's attributes that have not followed a change yet.
COPIES_DUE = "copiesDue"
#: The identity that an object had before it moved, until all that refers to it has followed.
MOVED_FROM = "movedFrom"
#: Set while a migration counts what refers to an item; whoever adds to one of the item's numbers takes it away.
COUNTING = "counting"
#: Begins the names of an item's counts of the objects that refer to it by a reference that is checked.
REFERRED_PREFIX = "refs:"

#: What a unique claim carries besides its own key: the key of the item that holds the value.
CLAIM_ITEM_TYPE = "UniqueClaim"
CLAIM_OWNER_PARTITION = "ownerPk"
CLAIM_OWNER_SORT = "ownerSk"

#: The partition of what migrations keep, and the type of how far work on items is.
MIGRATIONS = "MIGRATIONS"
CHECKPOINT_ITEM_TYPE = "MigrationCheckpoint"
#: What says that a migration is applied, and since when.
MIGRATION_ITEM_TYPE = "Migration"
APPLIED_AT = "appliedAt"

TRASH_PREFIX = "TRASH"
UNIQUE_PREFIX = "UNIQUE"
#: The beginning of the partition with the history of one object in the admin: its model's label and its pk follow.
LOG_OF_OBJECT = "LOG#OBJECT"


def _index_partition(index: str) -> str:
    return f"{index}pk"


def _index_sort(index: str) -> str:
    return f"{index}sk"


#: The attribute that holds an index's partition key: ``gs1`` gives ``gs1pk``.
index_partition: Callable[[str], str] = cache(_index_partition)
#: The attribute that holds an index's sort key: ``gs1`` gives ``gs1sk``.
index_sort: Callable[[str], str] = cache(_index_sort)
