"""Operations on the key that a model has on an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db.migrations.operations.base import Operation, OperationCategory

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.rewrite import rewrite_index_keys
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.phases import ADD_KEY, ALTER_KEY, REMOVE_KEY, Pass
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.orm.conditions.terms import names_in
from dynamo_single.orm.conditions.wording import condition_of
from dynamo_single.orm.schema.keys.template import IndexKey, Template


class _KeyOperation(ItemsOperation):
    model_name: str
    name: str

    def touched(self) -> frozenset[str]:
        """Return the key; operations that write it add the attributes that it names."""
        return frozenset({f"key:{self.name}"})


class _KeyChange(_KeyOperation):
    def __init__(self, model_name: str, name: str, key: IndexKey) -> None:
        self.model_name, self.name, self.key = model_name, name, key

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot with the key."""
        return replace(before, keys={**before.keys, self.name: self.key})

    def touched(self) -> frozenset[str]:
        """Return the key, its index, and the attributes that it names."""
        variables = (*Template.parse(self.key.partition).variables, *Template.parse(self.key.sort).variables)
        if isinstance(self.key.condition, tuple):
            variables = (*variables, *names_in(condition_of(self.key.condition)))
        return super().touched() | {f"index:{self.key.index}", *(f"attribute:{each}" for each in variables)}


def _index_key_tasks(wanted: Snapshot, key: IndexKey) -> tuple[Task, ...]:
    """Return the task that gives every live item the keys of the snapshot on the key's index."""
    return (rewrite_index_keys(wanted, (key.index,), live=True),)


@public
class AddKey(_KeyChange):
    """Add a key on an index. It is written into every item, and serves queries once it is complete."""

    category = OperationCategory.ADDITION
    kind = ADD_KEY

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Write the key into the items, or remove it again."""
        return {"fill": _index_key_tasks(after, self.key), "drop new": _index_key_tasks(before, self.key)}

    def indexes(self) -> Sequence[str]:
        """Return the index of the key."""
        return (self.key.index,)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge with a removal, alteration or rename of the key."""
        if isinstance(operation, RemoveKey) and operation.name == self.name:
            return []
        if isinstance(operation, AlterKey) and operation.name == self.name:
            return [AddKey(model_name=self.model_name, name=self.name, key=operation.key)]
        if isinstance(operation, RenameKey) and operation.old_name == self.name:
            return [AddKey(model_name=self.model_name, name=operation.new_name, key=self.key)]
        return None

    def describe(self) -> str:
        return f"Add key {self.name} to {self.model_name} on {self.key.index}"

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name_lower}_{self.name}"


@public
class AlterKey(_KeyChange):
    """Change the templates of a key on the same index. Queries by it are refused until every item has the new one."""

    category = OperationCategory.ALTERATION
    kind = ALTER_KEY

    def hint(self, before: Snapshot, after: Snapshot) -> str:
        """Return the alternative that does not reject any list."""
        return (
            "To keep all lists working, add a new key on another index instead, and remove the former key in a later "
            "deployment."
        )

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Write the new key into every item, or the old one."""
        return {"fill": _index_key_tasks(after, self.key), "copy back": _index_key_tasks(before, self.key)}

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge with a later alteration or removal of the key, which replaces this operation."""
        later = isinstance(operation, AlterKey | RemoveKey) and operation.name == self.name
        return [operation] if later else None

    def describe(self) -> str:
        return f"Alter key {self.name} of {self.model_name} on {self.key.index}"

    @property
    def migration_name_fragment(self) -> str:
        return f"alter_{self.model_name_lower}_{self.name}"


@public
class RenameKey(_KeyOperation):
    """Rename a key in ``class Keys``. The stored items do not change."""

    category = OperationCategory.ALTERATION

    def __init__(self, model_name: str, old_name: str, new_name: str) -> None:
        self.model_name, self.old_name, self.new_name = model_name, old_name, new_name
        self.name = old_name

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot with the key under its new name, in the same position."""
        return replace(
            before, keys={self.new_name if name == self.old_name else name: key for name, key in before.keys.items()}
        )

    def touched(self) -> frozenset[str]:
        """Return both names."""
        return frozenset({f"key:{self.old_name}", f"key:{self.new_name}"})

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge two renames of the key into one."""
        if isinstance(operation, RenameKey) and operation.old_name == self.new_name:
            return [RenameKey(model_name=self.model_name, old_name=self.old_name, new_name=operation.new_name)]
        return None

    def describe(self) -> str:
        return f"Rename key {self.old_name} of {self.model_name} to {self.new_name}"

    @property
    def migration_name_fragment(self) -> str:
        return f"rename_{self.model_name_lower}_{self.old_name}_{self.new_name}"


@public
class RemoveKey(_KeyOperation):
    """Remove a key, also from the items."""

    category = OperationCategory.REMOVAL
    kind = REMOVE_KEY

    def __init__(self, model_name: str, name: str) -> None:
        self.model_name, self.name = model_name, name

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot without the key."""
        return replace(before, keys={name: key for name, key in before.keys.items() if name != self.name})

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Remove the key from the items, or write it again."""
        key = before.keys[self.name]
        return {"drop old": _index_key_tasks(after, key), "copy back": _index_key_tasks(before, key)}

    def describe(self) -> str:
        return f"Remove key {self.name} from {self.model_name}"

    @property
    def migration_name_fragment(self) -> str:
        return f"remove_{self.model_name_lower}_{self.name}"
