"""The operation that runs a project's function on the items of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.migrations.operations.base import OperationCategory

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.project_functions import Function, change_items
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.phases import ADD_VALUE, CHANGE_ONCE, Pass, Phases
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.stored_attributes import MigrationValue
from dynamo_single.orm.effects.counters import parent_counters
from dynamo_single.orm.schema import registry

#: The actions of default permissions, and of the trash.
_ACTIONS = ("add", "change", "delete", "hard_delete", "restore", "view")


@dataclass(frozen=True)
class RenamedLabels(MigrationValue):
    """The function for ``ChangeItems`` that replaces the label of a renamed model in one attribute.

    ``old`` and ``new`` are labels such as ``"shop.animal"``. The attribute is a reference to a content type, a string,
    or a set of permissions, in which the names of the model's default permissions are replaced. The function for
    ``reverse`` has the labels in the other order.
    """

    name: str
    old: str
    new: str

    def __call__(self, values: Mapping[str, Any]) -> Mapping[str, object] | None:
        """Return the new value of the attribute, or ``None`` if it does not contain the label."""
        held = values.get(self.name)
        renamed = self._permissions(held) if isinstance(held, set) else self._label(held)
        return None if renamed == held else {self.name: renamed}

    def _label(self, held: Any) -> Any:
        return self.new if getattr(held, "label", held) == self.old else held

    def _permissions(self, held: set[str]) -> set[str]:
        (app, old), (new_app, new) = self.old.split("."), self.new.split(".")
        names = {f"{app}.{action}_{old}": f"{new_app}.{action}_{new}" for action in _ACTIONS}
        return {names.get(each, each) for each in held}


def rename_labels(names: Iterable[str], old: str, new: str) -> Function:
    """Return the function that replaces the label of a renamed model in several attributes."""
    each = [RenamedLabels(name, old, new) for name in names]

    def renamed_labels(values: Mapping[str, Any]) -> Mapping[str, object]:
        return {name: value for function in each for name, value in (function(values) or {}).items()}

    return renamed_labels


@public
class ChangeItems(ItemsOperation):
    """Run a function on the items of a model, once per table, regardless of the number of databases.

    ``function`` accepts an item's values by the historical names of the attributes, and returns the values to change:
    ``{"name": "x"}``, ``{"name": None}`` to remove a value, ``None`` or ``{}`` to leave the item unchanged. The
    operation updates index keys, folded copies and claims.

    The function runs again for an item that another process changed in the meantime, and after an interrupted
    migration. It must return no changes for an item that it has already changed. ``repeat=True`` runs it while
    code of before the migration is refused, so that no item is left out. ``reverse`` is the function that reverts the
    operation.
    """

    category = OperationCategory.PYTHON
    only_declares = False

    def __init__(
        self,
        model_name: str,
        function: Function,
        reverse: Function | None = None,
        repeat: bool = False,
        elidable: bool = False,
    ) -> None:
        self.model_name, self.function, self.reverse = model_name, function, reverse
        self.repeat = repeat
        self.elidable = elidable  # type: ignore[misc]  # Django assigns it too

    @property
    def reversible(self) -> bool:  # type: ignore[override]  # a plain attribute elsewhere
        """Whether there is a function that reverts the operation."""
        return self.reverse is not None

    def changed(self, before: Snapshot) -> Snapshot:
        """Return the snapshot unchanged: values change, and declarations do not."""
        return before

    def phases(self, before: Snapshot, after: Snapshot) -> Phases:
        """Return the phases of one pass, or with ``repeat`` of a value that all code has to write."""
        return ADD_VALUE if self.repeat else CHANGE_ONCE

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Run the function, or the ``reverse`` function."""
        back = () if self.reverse is None else (change_items(before, self.reverse),)
        return {"fill": (change_items(after, self.function),), "drop new": back, "convert back": back}

    def left_to_do(self, app_label: str) -> str:
        """Return how to rebuild the copies, derived objects and counts of the current model, or an empty string."""
        label = f"{app_label}.{self.model_name}"
        model = next((each for each in registry.all_models() if each._meta.label_lower == label.lower()), None)
        if model is None:
            return ""
        copying = [copy.field.model._meta.label for copy in registry.copied_from(model)]
        copying += [f"objects derived from {label}"] if model.derived_from else []
        counting = [each.parent._meta.label for each in parent_counters(model)]
        return " ".join(
            f"This may have changed values {used} {' and '.join(dict.fromkeys(holders))}, which the migration does not "
            "update. Run manage.py dynamo_rebuild."
            for used, holders in (("copied to", copying), ("counted by", counting))
            if holders
        )

    def describe(self) -> str:
        return f"Change items of {self.model_name} by {getattr(self.function, '__name__', 'a function')}"
