"""Operations on one attribute of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.migrations.operations.base import Operation, OperationCategory
from django.db.models import NOT_PROVIDED

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.attributes import Compute, convert_attribute, copy_value, drop_attribute
from dynamo_single.evolution.operations.base import (
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
        """Return the attribute."""
        return frozenset({f"attribute:{self.name}"})


@public
class AddAttribute(_AttributeOperation):
    """Add an attribute. Items that lack it get ``default`` or the result of ``compute``.

    ``default`` is a value, or a function without arguments that is called for each item. ``compute`` is a function of
    the item's values by attribute. A folded copy is computed from its source, and a copy of another object is read from
    that object. A ``null`` attribute without either is not written. ``migrate --finish`` counts the value of a counter,
    and the objects that refer to the target of a checked reference.
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
        """Return the snapshot with the attribute."""
        return replace(before, attributes={**before.attributes, self.name: self.attribute})

    def touched(self) -> frozenset[str]:
        """Return the attribute and its source. A ``compute`` function may read all attributes."""
        return frozenset({"*"}) if self.compute else super().touched() | computed_source(self.attribute)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge with a removal, a rename, or an alteration that has neither a function nor a default."""
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
        """Write the attribute into items that lack it."""
        return fill_tasks(after, self.name, self.default, self.compute)

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Write it into items that old code has written without it."""
        return self.open_tasks(before, after)

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Remove the attribute from the items."""
        return (drop_attribute(after, before, self.name),)

    def difference(self, before: Snapshot, after: Snapshot, labels: tuple[str, str]) -> Difference:
        """Return the difference: items may lack a new value until the change is finished."""
        waits = self.attribute.counted or self.open_tasks(before, after)
        return Difference(before, after, labels, unfilled=(self.attribute.stored,) if waits else ())

    def _again(self, name: str, attribute: StoredAttribute) -> AddAttribute:
        named: dict[str, Any] = {} if self.default is NOT_PROVIDED else {"default": self.default}
        if self.compute is not None:
            named["compute"] = self.compute
        return AddAttribute(model_name=self.model_name, name=name, attribute=attribute, **named)

    def describe(self) -> str:
        return f"Add attribute {self.name} to {self.model_name}{counting_note(self.attribute)}"

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name_lower}_{self.name}"


@public
class RemoveAttribute(_AttributeOperation):
    """Remove an attribute. ``migrate --finish`` removes its values from the items.

    ``drop=False`` keeps the values. ``makemigrations --noinput`` writes it if the attribute may have been renamed.
    """

    category = OperationCategory.REMOVAL

    def __init__(self, model_name: str, name: str, drop: bool = True) -> None:
        self.model_name, self.name, self.drop = model_name, name, drop

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot without the attribute."""
        return replace(before, attributes={n: each for n, each in before.attributes.items() if n != self.name})

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Remove the values from the items."""
        return (drop_attribute(before, after, self.name),) if self.drop else ()

    def stays_open(self, before: Snapshot, after: Snapshot) -> bool:
        """Return true: old code reads the attribute until it has stopped."""
        return True

    def describe(self) -> str:
        kept = "" if self.drop else "; its values stay in the items"
        return f"Remove attribute {self.name} from {self.model_name}{kept}"

    @property
    def migration_name_fragment(self) -> str:
        return f"remove_{self.model_name_lower}_{self.name}"


@public
class RenameAttribute(_AttributeOperation):
    """Rename an attribute in Python. If ``stored`` is given, its values move to that physical name too.

    Keys, rules and folded copies that name the attribute change with it.
    """

    category = OperationCategory.ALTERATION

    def __init__(self, model_name: str, old_name: str, new_name: str, stored: str | None = None) -> None:
        self.model_name, self.old_name, self.new_name, self.stored = model_name, old_name, new_name, stored
        self.name = old_name

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot with the new name."""
        if self.old_name not in before.attributes:
            raise ConfigurationError(f"{self.model_name} has no attribute {self.old_name!r} that could be renamed.")
        return with_attribute_renamed(before, self.old_name, self.new_name, self.stored)

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Copy the values to the new physical name."""
        return (copy_value(before, after, self.old_name, self.new_name),) if self._moves(before, after) else ()

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Copy values that old code wrote in the meantime, and release the claims of items that it deleted."""
        if not self._moves(before, after):
            return ()
        return (*unused_claim_tasks(after, self.new_name), *self.open_tasks(before, after))

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Remove the old values, with their claims."""
        if not self._moves(before, after):
            return ()
        return (drop_attribute(before, after, self.old_name), *release_tasks(before, after, self.old_name))

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Copy the values back to the old name, and remove the new ones."""
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
        """Return the difference. Texts of keys stay; code that reads the new physical name has to wait."""
        names = zip(before.access_keys, after.access_keys, strict=True)
        texts = {after.key_fingerprint(new): before.key_fingerprint(old) for old, new in names}
        if not self._moves(before, after):
            return Difference(before, after, labels, as_before=texts)
        stored = before.attributes[self.old_name].stored, after.attributes[self.new_name].stored
        return Difference(before, after, labels, held_back=stored[1:], as_before=texts, renamed=stored)

    def undo_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Remove the values under the new physical name. Those under the old one are still authoritative."""
        return undo_tasks(before, after, self.old_name, self.new_name) if self._moves(before, after) else ()

    def _moves(self, before: Snapshot, after: Snapshot) -> bool:
        return before.attributes[self.old_name].stored != after.attributes[self.new_name].stored

    def touched(self) -> frozenset[str]:
        """Return both names."""
        return frozenset({f"attribute:{self.old_name}", f"attribute:{self.new_name}"})

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge two renames of the attribute into one."""
        if isinstance(operation, RenameAttribute) and operation.old_name == self.new_name:
            stored = operation.stored or self.stored
            named = {"stored": stored} if stored else {}
            names = {"old_name": self.old_name, "new_name": operation.new_name}
            return [RenameAttribute(model_name=self.model_name, **names, **named)]
        return None

    def describe(self) -> str:
        moved = f", stored as {self.stored}" if self.stored else ""
        return f"Rename attribute {self.old_name} of {self.model_name} to {self.new_name}{moved}"

    @property
    def migration_name_fragment(self) -> str:
        return f"rename_{self.old_name}_{self.model_name_lower}_{self.new_name}"


@public
class AlterAttribute(_AttributeOperation):
    """Change how an attribute is stored, and convert its values.

    ``convert`` is a function of the old value. Without it, the new attribute must accept the old value itself.
    ``default`` is written into items that lack a newly required value.
    """

    category = OperationCategory.ALTERATION

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
        """Return the snapshot with the altered attribute."""
        return replace(before, attributes={**before.attributes, self.name: self.attribute})

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Write newly required values, and copy converted ones to the new physical name if there is one."""
        missing = fill_tasks(after, self.name, self.default, None) if self.default is not NOT_PROVIDED else ()
        if before.attributes[self.name].stored == self.attribute.stored:
            return missing
        return (copy_value(before, after, self.name, self.name, self.convert), *missing)

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Repeat this for items of old code. Convert values in place only now, since old code reads the old form."""
        if before.attributes[self.name].stored != self.attribute.stored:
            return (*unused_claim_tasks(after, self.name), *self.open_tasks(before, after))
        if not self._is_stored_otherwise(before, after):
            return self.open_tasks(before, after)
        if self.attribute.is_computed:
            return fill_tasks(after, self.name, NOT_PROVIDED, None)
        return (convert_attribute(before, after, self.name, self.convert), *self.open_tasks(before, after))

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Remove the values under the old physical name."""
        moved = before.attributes[self.name].stored != self.attribute.stored
        return (drop_attribute(before, after, self.name), *release_tasks(before, after, self.name)) if moved else ()

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Convert the values back, if the old form accepts them."""
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
        """Return the difference: code that reads another physical name has to wait until the change is finished."""
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
        """Remove the values under the new physical name. Those under the old one are still authoritative."""
        moved = before.attributes[self.name].stored != self.attribute.stored
        return undo_tasks(before, after, self.name, self.name) if moved else self.back_tasks(before, after)

    def _is_stored_otherwise(self, before: Snapshot, after: Snapshot) -> bool:
        return before.attribute_fingerprint(self.name) != after.attribute_fingerprint(self.name)

    def touched(self) -> frozenset[str]:
        """Return the attribute and its source."""
        return super().touched() | computed_source(self.attribute)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge with a later alteration or removal of the attribute, which replaces this one."""
        if isinstance(operation, RemoveAttribute) and operation.name == self.name:
            return [operation]
        later = isinstance(operation, AlterAttribute) and operation.name == self.name
        return [operation] if later and self.declares_only else None

    def describe(self) -> str:
        return f"Alter attribute {self.name} of {self.model_name}{counting_note(self.attribute)}"

    @property
    def migration_name_fragment(self) -> str:
        return f"alter_{self.model_name_lower}_{self.name}"


@dataclass(frozen=True)
class Extract(MigrationValue):
    """Return a nested value of a document, for ``AddAttribute(compute=Extract("data__publisher"))``.

    ``path`` has the syntax of ``ExtractedAttribute``. An item without the path does not get the attribute. A value of
    another type than the attribute's is a failure of its item. The document does not change.
    """

    path: str

    def __post_init__(self) -> None:
        first, *steps = self.path.split("__")
        if not first or not steps or "" in steps:
            raise ConfigurationError(
                f'Extract({self.path!r}) names no place inside a document: write "data__publisher", for example.'
            )

    def __call__(self, values: Mapping[str, object]) -> Any:
        """Return the value for an item, from the values of its attributes."""
        first, *steps = self.path.split("__")
        document = values.get(first)
        return value_at(document, steps_into("L" if isinstance(document, list) else "M", steps))
