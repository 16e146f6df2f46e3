"""The operation that changes the number of a model's shards."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db.migrations.operations.base import Operation, OperationCategory

from dynamo_single.evolution import apply
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.state import snapshot_in
from dynamo_single.evolution.steps import Step
from dynamo_single.orm.schema.keys.shards import Entry, Schedule

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import ProjectState


@public
class ChangeShards(ItemsOperation):
    """Change the number of shards for future objects, as ``manage.py dynamo_shards`` does.

    The number applies as soon as every process has read it, about eight minutes later, but at the earliest at
    ``since``. It applies immediately if the table contains no items of the model and no recorded number. Recorded
    numbers are kept. Reverting the operation does not remove the number, and reports this. The number is stored in the
    table rather than declared, so ``makemigrations`` never writes this operation.
    """

    category = OperationCategory.ALTERATION
    only_declares = False

    def __init__(self, model_name: str, shards: int, since: datetime | None = None) -> None:
        self.model_name, self.shards, self.since = model_name, shards, since
        Schedule((Entry(0, shards),))

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot unchanged. Raise ``ConfigurationError`` if the model has no sharded key."""
        apply.sharded_model(before, self.model_name)
        return before

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Record the number."""
        apply.change_shards(self._step(app_label, to_state), schema_editor, self.shards, self.since)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Keep the number, and report this."""
        apply.keep_shards(self._step(app_label, to_state), schema_editor)

    def _step(self, app_label: str, state: ProjectState) -> Step:
        snapshot = snapshot_in(state, app_label, self.model_name)
        return Step(self, app_label, snapshot, snapshot)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge with a later number, which replaces this number."""
        return [operation] if isinstance(operation, ChangeShards) else None

    def describe(self) -> str:
        since = "" if self.since is None else f", not before {self.since.isoformat()}"
        return f"Divide {self.model_name} into {self.shards} shards{since}"

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name_lower}_{self.shards}_shards"
