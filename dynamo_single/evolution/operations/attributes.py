"""Operations on one attribute of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.migrations.operations.base import Operation, OperationCategory
from django.db.models import NOT_PROVIDED

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.attributes import Compute, Convert, convert_attribute, copy_value, drop_attribute
from dynamo_single.evolution.operations.base import (
    ItemsOperation,
    computed_source,
    counting_note,
    drop_new_tasks,
    fill_tasks,
    public,
    release_tasks,
    unused_claim_tasks,
)
from dynamo_single.evolution.phases import (
    ADD_NUMBER,
    ADD_VALUE,
    DECLARE,
    PAUSE,
    REMOVE_DERIVED,
    REMOVE_NUMBER,
    REMOVE_VALUE,
    RENAME,
    Pass,
    Phases,
)
from dynamo_single.evolution.snapshots import Snapshot, with_attribute_renamed
from dynamo_single.evolution.steps import has_new_counts, moved_counts
from dynamo_single.evolution.stored_attributes import MigrationValue, StoredAttribute
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.rollout.following import is_served
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.computed import steps_into, value_at


def has_two_names(before: Snapshot, old: str, after: Snapshot, new: str) -> bool:
    """Return whether code can write an attribute under both physical names.

    Claims, other objects, the primary key and references depend on one name only. The declaration of the current model
    counts too: a snapshot does not distinguish a reference from the key that it stores.
    """
    named = {name for rule in before.unique for name in rule.names}
    conditioned = any(rule.condition is not None for rule in before.unique)
    if old in named or conditioned or old in before.identity:
        return False
    model = registry.model_of_type(after.alias, after.item_type)
    attributes = () if model is None else registry.attributes_of(model).values()
    stored = {before.attributes[old].stored, after.attributes[new].stored}
    found = next((each for each in attributes if each.attr_name in stored), None)
    return found is None or model is None or is_served(model, found)


def rename_passes(
    before: Snapshot, after: Snapshot, old: str, new: str, convert: Convert | None = None
) -> Mapping[Pass, tuple[Task, ...]]:
    """Return the passes of another physical name: copied and dropped apart, or both within a pause."""
    copied, moved = (copy_value(before, after, old, new, convert, is_paused=paused) for paused in (False, True))
    back, moved_back = (copy_value(after, before, new, old, is_paused=paused) for paused in (False, True))
    dropped = (drop_attribute(before, after, old), *release_tasks(before, after, old))
    undone = drop_new_tasks(before, after, old, new)
    return {
        "copy": (copied,),
        "drop old": dropped,
        "copy back": (back,) if convert is None else (),
        "drop new": undone,
        "convert": (*unused_claim_tasks(after, new), moved, *dropped, *moved_counts(before, after, (old, new))),
        "convert back": (
            *unused_claim_tasks(before, old),
            *((moved_back,) if convert is None else ()),
            *undone,
            *moved_counts(after, before, (new, old)),
        ),
    }


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
    that object. A ``null`` attribute without either is not written. ``migrate`` counts the value of a counter,
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

    def phases(self, before: Snapshot, after: Snapshot) -> Phases:
        """Return the phases of a value that all code has to write, if items get one."""
        if has_new_counts(before, after):
            return ADD_NUMBER
        is_taken = self.attribute.stored in before.former  # code of before would take it for another attribute
        return ADD_VALUE if is_taken or self._filled(after) else DECLARE

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Write the attribute into items that lack it, or remove it from the items."""
        return {"fill": self._filled(after), "drop new": (drop_attribute(after, before, self.name),)}

    def values(self, before: Snapshot, after: Snapshot) -> tuple[str, ...]:
        """Return the attribute if items get a value of it."""
        return (self.attribute.stored,) if self.attribute.counted or self._filled(after) else ()

    def _filled(self, after: Snapshot) -> tuple[Task, ...]:
        return fill_tasks(after, self.name, self.default, self.compute)

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
    """Remove an attribute, and its values from the items.

    ``drop=False`` keeps the values. ``makemigrations --noinput`` writes it if the attribute may have been renamed.
    """

    category = OperationCategory.REMOVAL

    def __init__(self, model_name: str, name: str, drop: bool = True) -> None:
        self.model_name, self.name, self.drop = model_name, name, drop

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot without the attribute."""
        return replace(before, attributes={n: each for n, each in before.attributes.items() if n != self.name})

    def phases(self, before: Snapshot, after: Snapshot) -> Phases:
        """Return the phases of an attribute that goes; code that lacks a derived one would leave a wrong value."""
        attribute = before.attributes[self.name]
        if attribute.counted or attribute.checked:
            return REMOVE_NUMBER
        return REMOVE_DERIVED if attribute.source or attribute.copied else REMOVE_VALUE

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Remove the values from the items, or compute them again."""
        dropped = (drop_attribute(before, after, self.name),) if self.drop else ()
        return {"drop old": dropped, "fill": fill_tasks(before, self.name, NOT_PROVIDED, None)}

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

    def phases(self, before: Snapshot, after: Snapshot) -> Phases:
        """Return the phases of a rename that all code can follow, or of a pause if unique values depend on it."""
        if not self._moves(before, after):
            return DECLARE
        return RENAME if has_two_names(before, self.old_name, after, self.new_name) else PAUSE

    def hint(self, before: Snapshot, after: Snapshot) -> str:
        """Name the option that keeps the stored values unchanged."""
        if self.phases(before, after) is not PAUSE:
            return ""
        stored = before.attributes[self.old_name].stored
        return f'With attr_name="{stored}", the stored values do not change, and all code keeps working.'

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Copy the values to the new physical name and remove the old name, or vice versa."""
        return rename_passes(before, after, self.old_name, self.new_name)

    def renamed(self, before: Snapshot, after: Snapshot) -> tuple[str, str] | None:
        """Return both names."""
        return self.old_name, self.new_name

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

    def phases(self, before: Snapshot, after: Snapshot) -> Phases:
        """Return the phases of a rename, of a pause in which values are converted, or of a default that is written."""
        if self._moves(before):
            keeps = self._keeps_values(before) and has_two_names(before, self.name, after, self.name)
            return RENAME if keeps else PAUSE
        if has_new_counts(before, after):
            return ADD_NUMBER
        if self._is_stored_otherwise(before, after):
            return PAUSE
        if has_new_counts(after, before):
            return REMOVE_NUMBER
        return ADD_VALUE if self._filled(after) else DECLARE

    def hint(self, before: Snapshot, after: Snapshot) -> str:
        """Recommend ``convert`` if the type changes: a value that the new type rejects stops the conversion."""
        one, other = before.attributes[self.name], self.attribute
        if self.convert is not None or one.kind == other.kind or one.is_computed or other.is_computed:
            return ""
        return (
            f"Values change from {one.kind} to {other.kind}. Pass convert= to the operation, a function of the old "
            f"value, unless {other.kind} accepts all of them; migrate --rehearse tries it."
        )

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Convert the values, or copy them to another physical name, and write newly required values."""
        filled = self._filled(after)
        if self._moves(before):
            found = dict(rename_passes(before, after, self.name, self.name, self.convert))
            return {**found, "convert": (*found["convert"], *filled), "copy": (*found["copy"], *filled)}
        if not self._is_stored_otherwise(before, after):
            return {"fill": filled}
        one, other = before.attributes[self.name], self.attribute
        return {
            "fill": filled,
            "convert": fill_tasks(after, self.name, NOT_PROVIDED, None)
            if other.is_computed
            else (convert_attribute(before, after, self.name, self.convert), *filled),
            "convert back": fill_tasks(before, self.name, NOT_PROVIDED, None)
            if one.is_computed
            else (convert_attribute(after, before, self.name),),
        }

    def values(self, before: Snapshot, after: Snapshot) -> tuple[str, ...]:
        """Return the attribute if items get a value of it."""
        recounted = self.attribute.counted and self._is_stored_otherwise(before, after)
        is_filled = not self._moves(before) and self.default is not NOT_PROVIDED
        return (self.attribute.stored,) if recounted or is_filled else ()

    def renamed(self, before: Snapshot, after: Snapshot) -> tuple[str, str] | None:
        """Return the name for another physical name."""
        return (self.name, self.name) if self._moves(before) and self._keeps_values(before) else None

    def _filled(self, after: Snapshot) -> tuple[Task, ...]:
        return () if self.default is NOT_PROVIDED else fill_tasks(after, self.name, self.default, None)

    def _moves(self, before: Snapshot) -> bool:
        return before.attributes[self.name].stored != self.attribute.stored

    def _keeps_values(self, before: Snapshot) -> bool:
        """Return whether the values are the same under both physical names."""
        return (
            self.convert is None
            and replace(before.attributes[self.name], stored=self.attribute.stored) == self.attribute
        )

    def _is_stored_otherwise(self, before: Snapshot, after: Snapshot) -> bool:
        return before.attribute_fingerprint(self.name) != after.attribute_fingerprint(self.name)

    def touched(self) -> frozenset[str]:
        """Return the attribute and its source."""
        return super().touched() | computed_source(self.attribute)

    def merged(self, operation: ItemsOperation) -> list[Operation] | None:
        """Merge with a later alteration or removal of the attribute, which replaces this operation."""
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
