"""The base class of all operations, and the tasks that fill, copy, release and remove attributes.

An operation changes the snapshot of one model, and lists the tasks for its items. It does not send requests.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeVar

from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED

from dynamo_single.evolution import apply
from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.attributes import Compute, drop_attribute, fill_attribute
from dynamo_single.evolution.backfill.claims import delete_unused_claims, release_claims
from dynamo_single.evolution.backfill.rewrite import fill_copy
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.state import put_snapshot, snapshot_in
from dynamo_single.evolution.steps import ItemsChange, Step, are_independent
from dynamo_single.evolution.stored_attributes import StoredAttribute

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


Kind = TypeVar("Kind", bound="type[ItemsOperation]")


def public(operation: Kind) -> Kind:
    """Make migration files import the class from its public path."""
    operation.__module__ = "dynamo_single.migrations"
    return operation


class ItemsOperation(Operation, ItemsChange):
    """An operation on the items of one model."""

    #: Items are changed one by one with conditional writes. A transaction of a database could not revert them.
    atomic = False
    #: ``sqlmigrate`` prints the requests.
    reduces_to_sql = True
    #: ``dynamo_single.backend`` recognizes apps with items to migrate by this attribute.
    changes_items: ClassVar[bool] = True

    #: Whether the operation depends only on declarations, and does not call a function of the project.
    only_declares: bool = True

    @property
    def model_name_lower(self) -> str:
        """The model's name in project states."""
        return self.model_name.lower()

    def references_model(self, name: str, app_label: str) -> bool:
        """Return whether the operation refers to this model."""
        return name.lower() == self.model_name_lower

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change the model's snapshot."""
        before = snapshot_in(state, app_label, self.model_name)
        put_snapshot(state, app_label, self.model_name, self.changed(before))

    @abstractmethod
    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot after the operation."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Start the change: see ``apply``."""
        before = snapshot_in(from_state, app_label, self.model_name)
        after = snapshot_in(to_state, app_label, self.name_after())
        apply.forwards(Step(self, app_label, before, after), schema_editor)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Revert the change. Django passes the state after the change first."""
        after = snapshot_in(from_state, app_label, self.name_after())
        before = snapshot_in(to_state, app_label, self.model_name)
        apply.backwards(Step(self, app_label, before, after), schema_editor)

    def reduce(self, operation: Operation, app_label: str) -> bool | list[Operation]:
        """Return the operations that replace both, or whether the order of the two does not matter."""
        found = super().reduce(operation, app_label)
        if found:
            return found
        if not isinstance(operation, ItemsOperation):
            return not operation.references_model(self.model_name, app_label)
        if not operation.references_model(self.model_name, app_label):
            return not self.references_model(operation.model_name, app_label)
        merged = self.merged(operation)
        return are_independent(self.touched(), operation.touched()) if merged is None else merged

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Return the operations that replace this and a later one on the same model, or ``None`` if both must stay."""
        return None


def computed_source(stored: StoredAttribute) -> frozenset[str]:
    """Return the source that an attribute is computed from."""
    return frozenset({f"attribute:{stored.source}"} if stored.source else ())


def fill_tasks(after: Snapshot, name: str, default: object, compute: Compute | None) -> tuple[Task, ...]:
    """Return the task that writes an attribute into items that lack it; none if it is counted or has no value."""
    attribute = after.attributes[name]
    if attribute.counted:
        return ()
    if attribute.copied:
        return (fill_copy(after, name),)
    if attribute.source:
        return (fill_attribute(after, name),)
    if compute is None and default is NOT_PROVIDED and attribute.absent is not None:
        default = attribute.value(None)
    if compute is None and default in (NOT_PROVIDED, None):
        return ()
    given = compute or (lambda values: default() if callable(default) else default)
    return (fill_attribute(after, name, given),)


def counting_note(attribute: StoredAttribute) -> str:
    """Return the note about counting that an operation's description ends with."""
    if attribute.checked:
        return "; referring objects are counted"
    return "; it is counted" if attribute.counted else ""


def unused_claim_tasks(snapshot: Snapshot, name: str) -> tuple[Task, ...]:
    """Return the tasks that release unused claims of the rules that name an attribute."""
    return tuple(delete_unused_claims(snapshot, rule) for rule in snapshot.unique if name in rule.names)


def release_tasks(before: Snapshot, after: Snapshot, name: str) -> tuple[Task, ...]:
    """Return the tasks that release the claims under an attribute's former physical name."""
    return tuple(release_claims(before, after, rule) for rule in before.unique if name in rule.names)


def drop_new_tasks(before: Snapshot, after: Snapshot, old: str, new: str) -> tuple[Task, ...]:
    """Return the tasks that remove a new physical name after code has stopped writing it."""
    return (*unused_claim_tasks(before, old), drop_attribute(after, before, new), *release_tasks(after, before, new))
