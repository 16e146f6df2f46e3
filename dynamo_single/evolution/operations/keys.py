"""Operations on the key that a model has on an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db.migrations.operations.base import Operation, OperationCategory

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.rewrite import rewrite_index_keys
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.orm.conditions.terms import names_in
from dynamo_single.orm.conditions.wording import condition_of
from dynamo_single.orm.schema.keys.template import IndexKey, Template


class _KeyOperation(ItemsOperation):
    model_name: str
    name: str

    def touched(self) -> frozenset[str]:
        """The key, and for one that is written, the attributes that it names."""
        return frozenset({f"key:{self.name}"})


def _index_key_tasks(wanted: Snapshot, key: IndexKey) -> tuple[Task, ...]:
    """Give every item what the snapshot has on the key's index."""
    return (rewrite_index_keys(wanted, (key.index,)),)


def _needs(name: str, key: IndexKey) -> frozenset[str]:
    variables = (*Template.parse(key.partition).variables, *Template.parse(key.sort).variables)
    if isinstance(key.condition, tuple):
        variables = (*variables, *names_in(condition_of(key.condition)))
    return frozenset({f"key:{name}", f"index:{key.index}", *(f"attribute:{each}" for each in variables)})


@public
class AddKey(_KeyOperation):
    """A key on an index: written into every item of the model, whose queries find it once it is filled."""

    category = OperationCategory.ADDITION

    def __init__(self, model_name: str, name: str, key: IndexKey) -> None:
        self.model_name, self.name, self.key = model_name, name, key

    def changed(self, before: Snapshot) -> Snapshot:
        """With the key."""
        return replace(before, keys={**before.keys, self.name: self.key})

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Write the key into the items."""
        return _index_key_tasks(after, self.key)

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Write it into those of old code."""
        return _index_key_tasks(after, self.key)

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take it out."""
        return _index_key_tasks(before, self.key)

    def indexes(self) -> Sequence[str]:
        """The key's."""
        return (self.key.index,)

    def touched(self) -> frozenset[str]:
        """The key, its index, and the attributes that it names."""
        return _needs(self.name, self.key)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """A key that is removed again never was; one that is altered was so from the start."""
        if isinstance(operation, RemoveKey) and operation.name == self.name:
            return []
        if isinstance(operation, AlterKey) and operation.name == self.name:
            return [AddKey(model_name=self.model_name, name=self.name, key=operation.key)]
        if isinstance(operation, RenameKey) and operation.old_name == self.name:
            return [AddKey(model_name=self.model_name, name=operation.new_name, key=self.key)]
        return None

    def describe(self) -> str:
        """In one line."""
        return f"Add key {self.name} to {self.model_name} on {self.key.index}"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"{self.model_name_lower}_{self.name}"


@public
class AlterKey(_KeyOperation):
    """Other templates of a key on the same index: every item gets its new form when the migration is finished."""

    category = OperationCategory.ALTERATION

    def __init__(self, model_name: str, name: str, key: IndexKey) -> None:
        self.model_name, self.name, self.key = model_name, name, key

    def changed(self, before: Snapshot) -> Snapshot:
        """With the key's new form."""
        return replace(before, keys={**before.keys, self.name: self.key})

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Give every item the new form: old code reads by the old one until then."""
        return _index_key_tasks(after, self.key)

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Give every item the old form."""
        return _index_key_tasks(before, self.key)

    def touched(self) -> frozenset[str]:
        """The key, its index, and the attributes that it names."""
        return _needs(self.name, self.key)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """The later form counts; a key that is removed need not be altered."""
        later = isinstance(operation, AlterKey | RemoveKey) and operation.name == self.name
        return [operation] if later else None

    def describe(self) -> str:
        """In one line."""
        return f"Alter key {self.name} of {self.model_name} on {self.key.index}"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"alter_{self.model_name_lower}_{self.name}"


@public
class RenameKey(_KeyOperation):
    """Another name of a key in ``class Keys``. Nothing that is stored changes."""

    category = OperationCategory.ALTERATION

    def __init__(self, model_name: str, old_name: str, new_name: str) -> None:
        self.model_name, self.old_name, self.new_name = model_name, old_name, new_name
        self.name = old_name

    def changed(self, before: Snapshot) -> Snapshot:
        """With the key under its new name, in its old place."""
        return replace(
            before, keys={self.new_name if name == self.old_name else name: key for name, key in before.keys.items()}
        )

    def touched(self) -> frozenset[str]:
        """Both names."""
        return frozenset({f"key:{self.old_name}", f"key:{self.new_name}"})

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Two renames are one."""
        if isinstance(operation, RenameKey) and operation.old_name == self.new_name:
            return [RenameKey(model_name=self.model_name, old_name=self.old_name, new_name=operation.new_name)]
        return None

    def describe(self) -> str:
        """In one line."""
        return f"Rename key {self.old_name} of {self.model_name} to {self.new_name}"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"rename_{self.model_name_lower}_{self.old_name}_{self.new_name}"


@public
class RemoveKey(_KeyOperation):
    """A key that there is no more: it is taken out of the items when the migration is finished."""

    category = OperationCategory.REMOVAL

    def __init__(self, model_name: str, name: str) -> None:
        self.model_name, self.name = model_name, name

    def changed(self, before: Snapshot) -> Snapshot:
        """Without the key."""
        return replace(before, keys={name: key for name, key in before.keys.items() if name != self.name})

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take it out of the items."""
        return _index_key_tasks(after, before.keys[self.name])

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Write it again."""
        return _index_key_tasks(before, before.keys[self.name])

    def describe(self) -> str:
        """In one line."""
        return f"Remove key {self.name} from {self.model_name}"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"remove_{self.model_name_lower}_{self.name}"
