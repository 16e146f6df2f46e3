"""Operations on a whole model: its existence, its name, and the keys of its items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db.migrations.operations.base import Operation, OperationCategory
from django.db.migrations.state import ProjectState

from dynamo_single.evolution import apply
from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.claims import move_items, rename_parent_marks
from dynamo_single.evolution.backfill.project_functions import change_items, each_by_type
from dynamo_single.evolution.backfill.rewrite import rewrite_index_keys
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.operations.items import rename_labels
from dynamo_single.evolution.phases import ADD_KEY, ALTER_KEY, CHANGE_ONCE, DECLARE, PAUSE, REMOVE_KEY, Pass, Phases
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.state import SnapshotState, snapshot_in
from dynamo_single.evolution.steps import Step, moved_counts
from dynamo_single.evolution.stored_attributes import StoredAttribute, UniqueRule
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.template import IndexKey, Key
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.schema.upgrades import FIRST

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


@public
class AddModel(ItemsOperation):
    """Add a model. Its items are not written: every key, rule and attribute is recorded as complete."""

    category = OperationCategory.ADDITION
    serialization_expand_args = ["attributes", "keys", "unique"]  # noqa: RUF012 - Django's

    def __init__(
        self,
        name: str,
        item_type: str,
        primary: Key,
        attributes: Mapping[str, StoredAttribute],
        keys: Mapping[str, IndexKey] | None = None,
        unique: Sequence[UniqueRule] = (),
        trash_index: str | None = None,
        alias: str = "default",
        schema_version: int = FIRST,
        oldest_version: int = FIRST,
        pending: Sequence[str] = (),
    ) -> None:
        self.name = self.model_name = name
        self.snapshot = Snapshot(
            item_type,
            primary,
            dict(attributes),
            dict(keys or {}),
            tuple(unique),
            trash_index,
            alias,
            schema_version,
            oldest_version,
            tuple(pending),
        )

    @classmethod
    def of(cls, name: str, snapshot: Snapshot) -> AddModel:
        """Return the operation for a model with this snapshot."""
        _path, arguments, named = snapshot.deconstruct()
        item_type, primary, attributes = arguments
        named |= {name: list(named[name]) for name in ("unique", "pending") if name in named}
        return cls(name=name, item_type=item_type, primary=primary, attributes=attributes, **named)

    @property
    def name_lower(self) -> str:
        """The name, as in Django's ``CreateModel``."""
        return self.model_name_lower

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Add the model to the state."""
        state.add_model(SnapshotState.make(app_label, self.name, self.snapshot))

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the model's snapshot."""
        return self.snapshot

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Record the model in the table. Raise an error if there are items already, unless they are adopted."""
        apply.create_model(Step(self, app_label, self.snapshot, self.snapshot), schema_editor)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Remove the model from the table's state. Its items stay."""
        apply.forget_model(Step(self, app_label, self.snapshot, self.snapshot), schema_editor)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge with any later operation on the model that does not run a function."""
        if isinstance(operation, RemoveModel):
            return []
        if isinstance(operation, RenameModel):
            return [AddModel.of(operation.new_name, self.snapshot)]
        if not operation.only_declares:
            return None
        return [AddModel.of(self.name, operation.changed(self.snapshot))]

    def describe(self) -> str:
        return f"Add model {self.name}, stored as {self.snapshot.item_type}"

    @property
    def migration_name_fragment(self) -> str:
        return self.model_name_lower


@public
class RemoveModel(ItemsOperation):
    """Remove a model. Its items stay in the table."""

    category = OperationCategory.REMOVAL

    def __init__(self, name: str) -> None:
        self.name = self.model_name = name

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Remove the model from the state."""
        state.remove_model(app_label, self.model_name_lower)

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot unchanged: the items stay."""
        return before

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Remove the model from the table's state."""
        before = snapshot_in(from_state, app_label, self.name)
        apply.forget_model(Step(self, app_label, before, before), schema_editor)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Record the model in the table again, after a check of a sample of items that were written in the meantime."""
        before = snapshot_in(to_state, app_label, self.name)
        apply.create_model(Step(self, app_label, before, before), schema_editor, adopt=True)

    def describe(self) -> str:
        return f"Remove model {self.name}; its items stay in the table"

    @property
    def migration_name_fragment(self) -> str:
        return f"remove_{self.model_name_lower}"


@public
class RenameModel(ItemsOperation):
    """Rename the class of a model, and its label in the items of all models in its table.

    The model's own items do not change; ``MoveKeys`` changes their ``itemType``. One pass over the table replaces the
    label in references to content types, in the permissions of users and groups, and in log entries, also in the trash.
    It begins when no running process has code of before the migration, which would not find the new label and could
    store the old one. No code is rejected. ``left_to_do()`` names the labels that the pass does not change.
    """

    category = OperationCategory.ALTERATION
    follows_code = True

    def __init__(self, old_name: str, new_name: str) -> None:
        self.old_name, self.new_name = old_name, new_name
        self.model_name = old_name

    def references_model(self, name: str, app_label: str) -> bool:
        """Return whether the operation refers to a model of either name."""
        return name.lower() in (self.old_name.lower(), self.new_name.lower())

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Rename the model and the references to it."""
        snapshot_in(state, app_label, self.old_name)
        state.rename_model(app_label, self.old_name, self.new_name)

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot unchanged."""
        return before

    def name_after(self) -> str:
        """Return the new name."""
        return self.new_name

    def phases(self, before: Snapshot, after: Snapshot) -> Phases:
        """Return the phases of one pass, or of a declaration if no model in the table stores labels."""
        is_same = self.old_name.lower() == self.new_name.lower()
        return DECLARE if is_same or not _holders(before.alias) else CHANGE_ONCE

    def passes_in(self, app_label: str, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Replace the label in the items of the current models, or replace it back."""
        old, new = self._labels(app_label)
        return {"fill": _label_tasks(before.alias, old, new), "convert back": _label_tasks(before.alias, new, old)}

    def rewrites(self, alias: str, own: frozenset[str]) -> frozenset[str]:
        """Return the types of the items with labels."""
        return frozenset(model._options.item_type for model in _holders(alias))

    def left_to_do(self, app_label: str) -> str:
        """Return how to replace the labels that the pass does not change, or an empty string."""
        old, new = self._labels(app_label)
        model = next((each for each in registry.all_models() if each._meta.label_lower == new), None)
        done = {} if model is None else _holders(model._options.alias)
        found = sorted(
            f"{each._meta.label}.{name} is in the primary key: save such objects by move()"
            if name in registry.layout_of(each).identity
            else f"{each._meta.label}: ChangeItems({each.__name__!r}, RenamedLabels({name!r}, {old!r}, {new!r}))"
            for each in registry.all_models()
            for name in _label_names(each)
            if model is not None and name not in done.get(each, ())
        )
        if not found:
            return ""
        return f"Some items keep {old!r}, which no longer names a model. Change them: {'; '.join(found)}."

    def _labels(self, app_label: str) -> tuple[str, str]:
        return f"{app_label}.{self.old_name}".lower(), f"{app_label}.{self.new_name}".lower()

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge two renames of the model into one."""
        if isinstance(operation, RenameModel) and operation.old_name.lower() == self.new_name.lower():
            return [RenameModel(self.old_name, operation.new_name)]
        return None

    def describe(self) -> str:
        return f"Rename model {self.old_name} to {self.new_name}"

    @property
    def migration_name_fragment(self) -> str:
        return f"rename_{self.old_name.lower()}_{self.new_name.lower()}"


def _label_names(model: type[DynamoModel]) -> list[str]:
    """Return the attributes of a model that store labels."""
    return [name for name, each in registry.attributes_of(model).items() if each.holds_labels]


def _holders(alias: str) -> dict[type[DynamoModel], list[str]]:
    """Return the models in a table whose labels a pass can replace, with their attributes.

    A primary key cannot change, and the other program of a model with ``Meta.shared`` does not follow.
    """
    found: dict[type[DynamoModel], list[str]] = {}
    for model in registry.all_models():
        identity = registry.layout_of(model).identity
        names = [name for name in _label_names(model) if name not in identity]
        if names and model._options.alias == alias and not model._options.shared:
            found[model] = names
    return found


def _label_tasks(alias: str, old: str, new: str) -> tuple[Task, ...]:
    """Return the task that replaces a label in a table."""
    tasks = {
        model._options.item_type: change_items(Snapshot.of(model), rename_labels(names, old, new))
        for model, names in _holders(alias).items()
    }
    return (each_by_type(tasks),) if tasks else ()


@public
class MoveKeys(ItemsOperation):
    """Change the primary key or the ``itemType``: write each item under its new key and delete it under the old one."""

    category = OperationCategory.ALTERATION
    kind = PAUSE

    def __init__(self, model_name: str, primary: Key | None = None, item_type: str | None = None) -> None:
        self.model_name, self.primary, self.item_type = model_name, primary, item_type

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot with the new primary key and type."""
        primary = before.primary if self.primary is None else self.primary
        return replace(before, primary=primary, item_type=self.item_type or before.item_type)

    def hint(self, before: Snapshot, after: Snapshot) -> str:
        """Name the option that keeps the items of a renamed class unchanged."""
        if before.item_type == after.item_type:
            return ""
        return (
            f'With item_type = "{before.item_type}" in class Meta, the items do not change, and all code keeps working.'
        )

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Move the items one by one, or back."""
        return {"convert": _move_tasks(before, after), "convert back": _move_tasks(after, before)}

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge two moves into one."""
        if not isinstance(operation, MoveKeys):
            return None
        primary, item_type = operation.primary or self.primary, operation.item_type or self.item_type
        named: dict[str, Any] = {"primary": primary} if primary else {}
        named |= {"item_type": item_type} if item_type else {}
        return [MoveKeys(model_name=self.model_name, **named)]

    def describe(self) -> str:
        parts = [] if self.primary is None else [f"({self.primary.partition}, {self.primary.sort})"]
        parts += [f"itemType {self.item_type}"] if self.item_type else []
        return f"Move items of {self.model_name} to {' and '.join(parts)}"

    @property
    def migration_name_fragment(self) -> str:
        return f"move_{self.model_name_lower}"


def _move_tasks(before: Snapshot, after: Snapshot) -> tuple[Task, ...]:
    moved = move_items(before, after)
    if before.item_type == after.item_type:
        return (moved,)
    return (moved, rename_parent_marks(before.item_type, after.item_type), *moved_counts(before, after))


@public
class AlterTrashIndex(ItemsOperation):
    """Change the index of the trash; ``None`` removes it."""

    category = OperationCategory.ALTERATION

    def __init__(self, model_name: str, index: str | None) -> None:
        self.model_name, self.index = model_name, index

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot with the trash on the new index."""
        return replace(before, trash_index=self.index)

    def phases(self, before: Snapshot, after: Snapshot) -> Phases:
        """Return the phases of a key that moves, is added, or is removed."""
        if not before.soft_delete or before.trash_index == after.trash_index:
            return DECLARE
        if before.trash_index is None:
            return ADD_KEY
        return REMOVE_KEY if after.trash_index is None else ALTER_KEY

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Write the new key into items in the trash, or the old one."""
        new, old = _trash_key_tasks(before, after), _trash_key_tasks(after, before)
        return {"fill": new, "drop old": new, "copy back": old, "drop new": old}

    def indexes(self) -> Sequence[str]:
        """Return the index of the trash."""
        return () if self.index is None else (self.index,)

    def touched(self) -> frozenset[str]:
        """Return the trash, which operations on an attribute or a key do not touch."""
        return frozenset({"trash"})

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge with a later change of the index, which replaces this operation."""
        return [operation] if isinstance(operation, AlterTrashIndex) else None

    def describe(self) -> str:
        return f"Read the trash of {self.model_name} by {self.index or 'no index'}"

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name_lower}_trash_{self.index or 'none'}"


def _trash_key_tasks(before: Snapshot, after: Snapshot) -> tuple[Task, ...]:
    indexes = {each for each in (before.trash_index, after.trash_index) if each is not None}
    return (rewrite_index_keys(after, indexes, live=False),) if after.soft_delete and indexes else ()
