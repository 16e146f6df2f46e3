"""Operations on one attribute of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.migrations.operations.base import Operation, OperationCategory
from django.db.models import NOT_PROVIDED

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.attributes import convert_attribute, copy_value, drop_attribute
from dynamo_single.evolution.operations.base import (
    Compute,
    ItemsOperation,
    computed_source,
    counting_note,
    fill_tasks,
    public,
    release_tasks,
    undo_tasks,
    unused_claim_tasks,
)
from dynamo_single.evolution.snapshots import Snapshot, with_attribute_renamed
from dynamo_single.evolution.state import Difference
from dynamo_single.evolution.stored_attributes import MigrationValue, StoredAttribute
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.attributes.computed import steps_into, value_at


class _AttributeOperation(ItemsOperation):
    name: str

    def touched(self) -> frozenset[str]:
        """The attribute."""
        return frozenset({f"attribute:{self.name}"})


@public
class AddAttribute(_AttributeOperation):
    """An attribute: items that lack it get ``default``, or what ``compute`` gives.

    ``default`` is a value, or a function without arguments that gives one for each item; ``compute`` is a function of
    the item's values by attribute. A folded copy is computed by itself, and a copy of another object is read from that.
    What is ``null`` and has neither is not written. A counter is counted by ``migrate --finish``, as is what a checked
    reference leads to.
    """

    category = OperationCategory.ADDITION

    def __init__(
        self,
        model_name: str,
        name: str,
        attribute: StoredAttribute,
        default: object = NOT_PROVIDED,
        compute: Compute | None = None,
    ) -> None:
        if compute is not None and default is not NOT_PROVIDED:
            raise ConfigurationError(
                f"AddAttribute of {model_name}.{name} has a default and compute: give one of them."
            )
        self.model_name, self.name, self.attribute = model_name, name, attribute
        self.default, self.compute = default, compute

    def changed(self, before: Snapshot) -> Snapshot:
        """With the attribute."""
        return replace(before, attributes={**before.attributes, self.name: self.attribute})

    def touched(self) -> frozenset[str]:
        """The attribute, and what it is computed of; a function may read them all."""
        return frozenset({"*"}) if self.compute else super().touched() | computed_source(self.attribute)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """One that is removed again never was; one that is renamed, or becomes optional, was so from the start."""
        if isinstance(operation, RemoveAttribute) and operation.name == self.name:
            return []
        if isinstance(operation, RenameAttribute) and operation.old_name == self.name:
            attribute = replace(self.attribute, stored=operation.stored or self.attribute.stored)
            return [self._again(operation.new_name, attribute)]
        same = isinstance(operation, AlterAttribute) and operation.name == self.name and operation.declares_only
        if same and isinstance(operation, AlterAttribute) and operation.attribute.kind == self.attribute.kind:
            return [self._again(self.name, operation.attribute)]
        return None

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Write the attribute where it is missing."""
        return fill_tasks(after, self.name, self.default, self.compute)

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Write it where old code has left it out."""
        return self.open_tasks(before, after)

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take it out."""
        return (drop_attribute(after, before, self.name),)

    def difference(self, before: Snapshot, after: Snapshot, labels: tuple[str, str]) -> Difference:
        """What is written into items may be missing until it is finished."""
        waits = self.attribute.counted or self.open_tasks(before, after)
        return Difference(before, after, labels, unfilled=(self.attribute.stored,) if waits else ())

    def _again(self, name: str, attribute: StoredAttribute) -> AddAttribute:
        named: dict[str, Any] = {} if self.default is NOT_PROVIDED else {"default": self.default}
        if self.compute is not None:
            named["compute"] = self.compute
        return AddAttribute(model_name=self.model_name, name=name, attribute=attribute, **named)

    def describe(self) -> str:
        """In one line."""
        return f"Add attribute {self.name} to {self.model_name}{counting_note(self.attribute)}"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"{self.model_name_lower}_{self.name}"


@public
class RemoveAttribute(_AttributeOperation):
    """An attribute that there is no more: its values are dropped when the migration is finished.

    ``drop=False`` keeps them in the items, as ``makemigrations --noinput`` writes it where the attribute may have been
    renamed.
    """

    category = OperationCategory.REMOVAL

    def __init__(self, model_name: str, name: str, drop: bool = True) -> None:
        self.model_name, self.name, self.drop = model_name, name, drop

    def changed(self, before: Snapshot) -> Snapshot:
        """Without the attribute."""
        return replace(before, attributes={n: each for n, each in before.attributes.items() if n != self.name})

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take the values out of the items."""
        return (drop_attribute(before, after, self.name),) if self.drop else ()

    def stays_open(self, before: Snapshot, after: Snapshot) -> bool:
        """Until old code, which reads it, has stopped."""
        return True

    def describe(self) -> str:
        """In one line."""
        kept = "" if self.drop else "; its values stay in the items"
        return f"Remove attribute {self.name} from {self.model_name}{kept}"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"remove_{self.model_name_lower}_{self.name}"


@public
class RenameAttribute(_AttributeOperation):
    """Another Python name of an attribute, and another physical one if ``stored`` is given: then values move.

    Keys, rules and folded copies that name it follow.
    """

    category = OperationCategory.ALTERATION
    takes_pending = False

    def __init__(self, model_name: str, old_name: str, new_name: str, stored: str | None = None) -> None:
        self.model_name, self.old_name, self.new_name, self.stored = model_name, old_name, new_name, stored
        self.name = old_name

    def changed(self, before: Snapshot) -> Snapshot:
        """With the new name."""
        if self.old_name not in before.attributes:
            raise ConfigurationError(f"{self.model_name} has no attribute {self.old_name!r} that could be renamed.")
        return with_attribute_renamed(before, self.old_name, self.new_name, self.stored)

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Store the values under the new physical name too."""
        return (copy_value(before, after, self.old_name, self.new_name),) if self._moves(before, after) else ()

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Store there what old code has written meanwhile, and release the claims of what it has deleted."""
        if not self._moves(before, after):
            return ()
        return (*unused_claim_tasks(after, self.new_name), *self.open_tasks(before, after))

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take the old ones out, with their claims."""
        if not self._moves(before, after):
            return ()
        return (drop_attribute(before, after, self.old_name), *release_tasks(before, after, self.old_name))

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Store them under the old name, and take the new ones out."""
        if not self._moves(before, after):
            return ()
        copied = copy_value(after, before, self.new_name, self.old_name)
        dropped = drop_attribute(after, before, self.new_name)
        return (
            *unused_claim_tasks(before, self.old_name),
            copied,
            dropped,
            *release_tasks(after, before, self.new_name),
        )

    def difference(self, before: Snapshot, after: Snapshot, labels: tuple[str, str]) -> Difference:
        """Keys have the same texts under the new name; code that reads it has to wait until it is finished."""
        names = zip(before.access_keys, after.access_keys, strict=True)
        texts = {after.key_fingerprint(new): before.key_fingerprint(old) for old, new in names}
        if not self._moves(before, after):
            return Difference(before, after, labels, as_before=texts)
        stored = before.attributes[self.old_name].stored, after.attributes[self.new_name].stored
        return Difference(before, after, labels, held_back=stored[1:], as_before=texts, renamed=stored)

    def undo_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take out what is under the new physical name: the old one counts still."""
        return undo_tasks(before, after, self.old_name, self.new_name) if self._moves(before, after) else ()

    def _moves(self, before: Snapshot, after: Snapshot) -> bool:
        return before.attributes[self.old_name].stored != after.attributes[self.new_name].stored

    def touched(self) -> frozenset[str]:
        """Both names."""
        return frozenset({f"attribute:{self.old_name}", f"attribute:{self.new_name}"})

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Two renames are one; one that is removed then need not be renamed."""
        if isinstance(operation, RenameAttribute) and operation.old_name == self.new_name:
            stored = operation.stored or self.stored
            named = {"stored": stored} if stored else {}
            names = {"old_name": self.old_name, "new_name": operation.new_name}
            return [RenameAttribute(model_name=self.model_name, **names, **named)]
        return None

    def describe(self) -> str:
        """In one line."""
        moved = f", stored as {self.stored}" if self.stored else ""
        return f"Rename attribute {self.old_name} of {self.model_name} to {self.new_name}{moved}"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"rename_{self.old_name}_{self.model_name_lower}_{self.new_name}"


@public
class AlterAttribute(_AttributeOperation):
    """Another form of an attribute: values that are stored otherwise are converted.

    ``convert`` is a function of the value as it was; without it the new attribute takes the old value, or refuses it.
    ``default`` is written into items that lack a value which is required by now.
    """

    category = OperationCategory.ALTERATION
    takes_pending = False

    def __init__(
        self,
        model_name: str,
        name: str,
        attribute: StoredAttribute,
        convert: Callable[[Any], Any] | None = None,
        default: object = NOT_PROVIDED,
    ) -> None:
        self.model_name, self.name, self.attribute = model_name, name, attribute
        self.convert, self.default = convert, default

    @property
    def declares_only(self) -> bool:
        """Whether the operation has neither a function nor a default."""
        return self.convert is None and self.default is NOT_PROVIDED

    def changed(self, before: Snapshot) -> Snapshot:
        """With the new form."""
        return replace(before, attributes={**before.attributes, self.name: self.attribute})

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Write values that are required by now; store converted ones under another physical name, if it has one."""
        missing = fill_tasks(after, self.name, self.default, None) if self.default is not NOT_PROVIDED else ()
        if before.attributes[self.name].stored == self.attribute.stored:
            return missing
        return (copy_value(before, after, self.name, self.name, self.convert), *missing)

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """The same again; values that keep their physical name are converted now, as old code reads the old form."""
        if before.attributes[self.name].stored != self.attribute.stored:
            return (*unused_claim_tasks(after, self.name), *self.open_tasks(before, after))
        if not self._is_stored_otherwise(before, after):
            return self.open_tasks(before, after)
        if self.attribute.is_computed:
            return fill_tasks(after, self.name, NOT_PROVIDED, None)
        return (convert_attribute(before, after, self.name, self.convert), *self.open_tasks(before, after))

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take out what is under the old physical name."""
        moved = before.attributes[self.name].stored != self.attribute.stored
        return (drop_attribute(before, after, self.name), *release_tasks(before, after, self.name)) if moved else ()

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Convert back, as far as the old form takes the values."""
        if before.attributes[self.name].stored != self.attribute.stored:
            copied = copy_value(after, before, self.name, self.name)
            dropped = drop_attribute(after, before, self.name)
            return (*unused_claim_tasks(before, self.name), copied, dropped, *release_tasks(after, before, self.name))
        if not self._is_stored_otherwise(before, after):
            return ()
        if before.attributes[self.name].is_computed:
            return fill_tasks(before, self.name, NOT_PROVIDED, None)
        return (convert_attribute(after, before, self.name),)

    def difference(self, before: Snapshot, after: Snapshot, labels: tuple[str, str]) -> Difference:
        """Code that reads another physical name has to wait until it is finished."""
        moved = before.attributes[self.name].stored != self.attribute.stored
        if not moved:
            recounted = self.attribute.counted and self._is_stored_otherwise(before, after)
            unfilled = (self.attribute.stored,) if recounted or self.default is not NOT_PROVIDED else ()
            return Difference(before, after, labels, unfilled)
        old = before.attributes[self.name]
        is_same = self.convert is None and replace(old, stored=self.attribute.stored) == self.attribute
        names = zip(before.access_keys, after.access_keys, strict=True)
        return Difference(
            before,
            after,
            labels,
            held_back=(self.attribute.stored,),
            as_before={after.key_fingerprint(new): before.key_fingerprint(each) for each, new in names}
            if is_same
            else None,
            renamed=(old.stored, self.attribute.stored) if is_same else None,
        )

    def undo_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Take out what is under the new physical name: the old one counts still."""
        moved = before.attributes[self.name].stored != self.attribute.stored
        return undo_tasks(before, after, self.name, self.name) if moved else self.back_tasks(before, after)

    def _is_stored_otherwise(self, before: Snapshot, after: Snapshot) -> bool:
        return before.attribute_fingerprint(self.name) != after.attribute_fingerprint(self.name)

    def touched(self) -> frozenset[str]:
        """The attribute, and what it is computed of."""
        return super().touched() | computed_source(self.attribute)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """The later form counts; one that is removed need not be altered."""
        if isinstance(operation, RemoveAttribute) and operation.name == self.name:
            return [operation]
        later = isinstance(operation, AlterAttribute) and operation.name == self.name
        return [operation] if later and self.declares_only else None

    def describe(self) -> str:
        """In one line."""
        return f"Alter attribute {self.name} of {self.model_name}{counting_note(self.attribute)}"

    @property
    def migration_name_fragment(self) -> str:
        """For the file's name."""
        return f"alter_{self.model_name_lower}_{self.name}"


# What a computed attribute is given out of a document: a function of values that a migration file can name.


@dataclass(frozen=True)
class Extract(MigrationValue):
    """What lies at a place of a document, for ``AddAttribute(compute=Extract("data__publisher"))``.

    The path is as ``ExtractedAttribute`` takes it. What has no such place is left without the attribute; a value of
    another kind than the attribute's is a failure of its item. The document stays as it is.
    """

    path: str

    def __post_init__(self) -> None:
        first, *steps = self.path.split("__")
        if not first or not steps or "" in steps:
            raise ConfigurationError(
                f'Extract({self.path!r}) names no place inside a document: write "data__publisher", for example.'
            )

    def __call__(self, values: Mapping[str, object]) -> Any:
        """The value of an item, by the values of its attributes."""
        first, *steps = self.path.split("__")
        document = values.get(first)
        return value_at(document, steps_into("L" if isinstance(document, list) else "M", steps))
