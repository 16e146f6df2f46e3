"""What the engine tells Django that it can do."""

from __future__ import annotations

from django.db.backends.base.features import BaseDatabaseFeatures


class DatabaseFeatures(BaseDatabaseFeatures):
    """Nothing that needs SQL or a rollback.

    ``supports_transactions`` is False because nothing is rolled back. While ``isolation.hooks`` undo the writes of
    tests it is True: a ``TestCase`` then creates its data once a class.
    """

    supports_transactions = False
    atomic_transactions = False
    uses_savepoints = True
    can_rollback_ddl = False
    can_clone_databases = True
    can_introspect_foreign_keys = False
    supports_foreign_keys = False
    supports_table_check_constraints = False
    supports_sequence_reset = False
    has_bulk_insert = False
    has_select_for_update = False
    supports_paramstyle_pyformat = False
