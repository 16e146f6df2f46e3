"""The base of all operations, and the tasks of those that change attributes.

An operation changes the snapshot of one model, and lists the tasks for its items. It does not send requests.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED

from dynamo_single.evolution import apply
from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.attributes import drop_attribute, fill_attribute
from dynamo_single.evolution.backfill.claims import delete_unused_claims, release_claims
from dynamo_single.evolution.backfill.rewrite import fill_copy
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.state import Difference, put_snapshot, snapshot_in
from dynamo_single.evolution.stored_attributes import StoredAttribute
from dynamo_single.orm.effects.counters import parent_counters
from dynamo_single.orm.schema import registry

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


Kind = TypeVar("Kind", bound="type[ItemsOperation]")

#: What an operation touches of its model if it may touch anything.
EVERYTHING = frozenset({"*"})


def public(operation: Kind) -> Kind:
    """Let migration files name the class by its public path."""
    operation.__module__ = "dynamo_single.migrations"
    return operation


class ItemsOperation(Operation):
    """An operation on the items of one model."""

    #: Items are changed one by one, each conditionally: there is nothing that a transaction could undo.
    atomic = False
    #: ``sqlmigrate`` prints the requests.
    reduces_to_sql = True
    #: By what ``dynamo_single.backend`` knows an app that has items to migrate.
    changes_items: ClassVar[bool] = True

    #: Whether the operation follows from declarations alone, and runs no function of the project over items.
    only_declares: ClassVar[bool] = True

    #: Whether the operation does what it should to items that upgrades have not reached yet.
    takes_pending: ClassVar[bool] = True

    model_name: str

    @property
    def model_name_lower(self) -> str:
        """The model's name as states have it."""
        return self.model_name.lower()

    def references_model(self, name: str, app_label: str) -> bool:
        """Whether the operation is about this model."""
        return name.lower() == self.model_name_lower

    def touched(self) -> frozenset[str]:
        """What of the model the operation reads or changes: ``attribute:x``, ``index:x``, ``rule:x``, or ``*``."""
        return EVERYTHING

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change the model's snapshot."""
        before = snapshot_in(state, app_label, self.model_name)
        put_snapshot(state, app_label, self.model_name, self.changed(before))

    @abstractmethod
    def changed(self, before: Snapshot) -> Snapshot:
        """The snapshot after the operation."""

    def name_after(self) -> str:
        """What the model is called after the operation."""
        return self.model_name

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """What ``migrate`` does to the items, one task after the other."""
        return ()

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """What ``migrate --finish`` does to the items once no old code writes any more; then it counts as filled."""
        return ()

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """What is done last, once every process has heard that the change is filled."""
        return ()

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """What leads from ``after`` back to ``before``."""
        return ()

    def undo_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """The same while the change is open, and what is of ``before`` counts still."""
        return self.back_tasks(before, after)

    def stays_open(self, before: Snapshot, after: Snapshot) -> bool:
        """Whether the change is over only after ``migrate --finish``."""
        return bool(self.finish_tasks(before, after) or self.drop_tasks(before, after))

    def hint(self) -> str:
        """What ``makemigrations`` says besides, once it has written the operation; empty for nothing."""
        return ""

    def left_to_do(self, app_label: str) -> str:
        """What somebody has to do by another command; empty if there is nothing."""
        return ""

    def to_rebuild(self, app_label: str) -> str:
        """What to do about what follows from values that changed, if the model has any of it now.

        Copies, derived objects, and numbers of those that refer to others.
        """
        label = f"{app_label}.{self.model_name}"
        model = next((each for each in registry.all_models() if each._meta.label_lower == label.lower()), None)
        if model is None:
            return ""
        copies = [copy.field.model._meta.label for copy in registry.copied_from(model)]
        copies += [f"what is derived from {label}"] if model.derived_from else []
        numbers = [each.parent._meta.label for each in parent_counters(model)]
        return " ".join(
            f"{', '.join(dict.fromkeys(follow))} may {does} what has changed, and does not follow: "
            "manage.py dynamo_rebuild writes it."
            for does, follow in (("copy", copies), ("count", numbers))
            if follow
        )

    def difference(self, before: Snapshot, after: Snapshot, labels: tuple[str, str]) -> Difference:
        """What changes of what the table says of the model."""
        return Difference(before, after, labels)

    def indexes(self) -> Sequence[str]:
        """The indexes that have to be there before an item is changed."""
        return ()

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Begin the change: see ``apply``."""
        before = snapshot_in(from_state, app_label, self.model_name)
        after = snapshot_in(to_state, app_label, self.name_after())
        apply.forwards(apply.Step(self, app_label, before, after), schema_editor)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Take the change back: Django gives the state after it first."""
        after = snapshot_in(from_state, app_label, self.name_after())
        before = snapshot_in(to_state, app_label, self.model_name)
        apply.backwards(apply.Step(self, app_label, before, after), schema_editor)

    def reduce(self, operation: Operation, app_label: str) -> bool | list[Operation]:
        """One operation for two, or whether this one may be done after the other one just as well."""
        found = super().reduce(operation, app_label)
        if found:
            return found
        if not isinstance(operation, ItemsOperation):
            return not operation.references_model(self.model_name, app_label)
        if not operation.references_model(self.model_name, app_label):
            return not self.references_model(operation.model_name, app_label)
        merged = self.merged(operation)
        return is_independent(self, operation) if merged is None else merged

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """What stands for this operation and a later one on the same model; ``None`` if both have to stay."""
        return None


def is_independent(one: ItemsOperation, other: ItemsOperation) -> bool:
    """Whether the order of two operations on one model makes no difference."""
    touched = one.touched(), other.touched()
    return EVERYTHING not in touched and touched[0].isdisjoint(touched[1])


# The tasks of operations on attributes: fill, copy, release and remove.

#: Gives an attribute's value of the other values of an item, by the attributes' names of then.
Compute = Callable[[Mapping[str, Any]], Any]


def computed_source(stored: StoredAttribute) -> frozenset[str]:
    """What an attribute is computed of."""
    return frozenset({f"attribute:{stored.source}"} if stored.source else ())


def fill_tasks(after: Snapshot, name: str, default: object, compute: Compute | None) -> tuple[Task, ...]:
    """The task that writes an attribute where it is missing; none if nothing says what, or it is counted."""
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
    """What a line about an operation adds where something is counted."""
    if attribute.checked:
        return "; those who refer are counted at --finish"
    return "; it is counted at --finish" if attribute.counted else ""


def unused_claim_tasks(snapshot: Snapshot, name: str) -> tuple[Task, ...]:
    """What releases the claims that nobody needs any more, of the rules that name an attribute."""
    return tuple(delete_unused_claims(snapshot, rule) for rule in snapshot.unique if name in rule.names)


def release_tasks(before: Snapshot, after: Snapshot, name: str) -> tuple[Task, ...]:
    """What releases the claims that are under an attribute's former physical name."""
    return tuple(release_claims(before, after, rule) for rule in before.unique if name in rule.names)


def undo_tasks(before: Snapshot, after: Snapshot, old: str, new: str) -> tuple[Task, ...]:
    """What takes another physical name out again that no item has for good yet."""
    return (*unused_claim_tasks(before, old), drop_attribute(after, before, new), *release_tasks(after, before, new))
