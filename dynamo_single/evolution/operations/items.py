"""The operation that runs a function of the project over the items of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.migrations.operations.base import OperationCategory

from dynamo_single.evolution.backfill import Task
from dynamo_single.evolution.backfill.project_functions import change_items
from dynamo_single.evolution.operations.base import ItemsOperation, public
from dynamo_single.evolution.snapshots import Snapshot

#: Takes an item's values by attribute, as they were then; gives those to change, or ``None``.
Function = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]


@public
class ChangeItems(ItemsOperation):
    """Run a function over the items of a model, once for the table, whatever databases there are.

    ``function`` takes an item's values by the attributes' names of then, and gives those to change: ``{"name": "x"}``,
    ``{"name": None}`` for one to remove, ``None`` or ``{}`` for nothing. Index keys, folded copies and claims follow.
    It is run again for an item that somebody changed meanwhile, and after a migration was interrupted, so it has to
    give nothing for what it has changed already. ``repeat=True`` runs it again when the migration is finished, over
    what old code wrote meanwhile. ``reverse`` is the function for going back.
    """

    category = OperationCategory.PYTHON
    only_declares = False
    takes_pending = False

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
        self.elidable = elidable  # type: ignore[misc]  # Django sets it so too

    @property
    def reversible(self) -> bool:  # type: ignore[override]  # a plain attribute elsewhere
        """Whether there is a function for going back."""
        return self.reverse is not None

    def changed(self, before: Snapshot) -> Snapshot:
        """As it was: values change, declarations do not."""
        return before

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Run the function."""
        return (change_items(after, self.function),)

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Run it again, if that is asked for."""
        return self.open_tasks(before, after) if self.repeat else ()

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Run the other function."""
        return () if self.reverse is None else (change_items(before, self.reverse),)

    def left_to_do(self, app_label: str) -> str:
        """Copies in other objects, and numbers."""
        return self.to_rebuild(app_label)

    def describe(self) -> str:
        """In one line."""
        return f"Change items of {self.model_name} by {getattr(self.function, '__name__', 'a function')}"
