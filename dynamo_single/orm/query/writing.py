"""What a queryset writes: the methods that change or create the objects that it describes, or that it is given.

``queryset_writes`` and ``bulk`` do it; ``queryset`` puts these methods beside the reading ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from asgiref.sync import sync_to_async

from dynamo_single.exceptions import NotSupported
from dynamo_single.later import Later
from dynamo_single.orm.query.planned import PlannedQuerySet
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import objects
from dynamo_single.orm.schema.kinds import DynamoModel, M
from dynamo_single.table.limits import MAX_ACTIONS

if TYPE_CHECKING:
    from dynamo_single.orm.write import bulk, queryset_writes
    from dynamo_single.orm.write.bulk import Created
    from dynamo_single.orm.write.job import Progress
else:
    bulk = Later("dynamo_single.orm.write.bulk")
    queryset_writes = Later("dynamo_single.orm.write.queryset_writes")

T = TypeVar("T")


class WritingQuerySet(PlannedQuerySet[M]):
    """The methods that write."""

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete each object as its own ``delete()`` does, under the queryset's conditions; the counts are by model."""
        self._check_writable("delete()")
        return self._written(queryset_writes.delete)

    def hard_delete(self) -> tuple[int, dict[str, int]]:
        """Delete each object for good, with soft delete too, under the queryset's conditions."""
        self._check_writable("hard_delete()")
        return self._written(queryset_writes.hard_delete)

    def restore(self) -> tuple[int, dict[str, int]]:
        """Take each object out of the trash, under the queryset's conditions; the counts are by model."""
        self._check_writable("restore()")
        return self._written(queryset_writes.restore)

    async def ahard_delete(self) -> tuple[int, dict[str, int]]:
        """``hard_delete()`` in a thread."""
        return await sync_to_async(self.hard_delete)()

    async def arestore(self) -> tuple[int, dict[str, int]]:
        """``restore()`` in a thread."""
        return await sync_to_async(self.restore)()

    def update(self, **kwargs: Any) -> int:
        """Set values on each object that matches: one Query, then one update an object, under the same conditions."""
        if self.query.is_sliced:
            raise TypeError("Cannot update a query once a slice has been taken.")
        self._check_rows()
        # Before anything is read, and where the queryset is not even planned.
        assigned = queryset_writes.read(self.model, kwargs)
        return self._written(lambda matches: queryset_writes.update(matches, assigned)) if assigned else 0

    def bulk_create(
        self,
        objs: Iterable[DynamoModel],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Iterable[str] | None = None,
        unique_fields: Iterable[str] | None = None,
        *,
        in_transactions: bool = False,
    ) -> Created[M]:
        """Create objects without signals: one request or transaction each, up to eight at once, none over an item.

        What two of them cannot both have is found before anything is sent. ``ignore_conflicts`` leaves out what exists;
        ``update_conflicts`` sets ``update_fields`` of it, or writes whole objects over it. ``in_transactions`` is the
        method of that name; with it ``batch_size`` bounds the objects of one.
        """
        creation = bulk.creation(
            self.model,
            batch_size=batch_size,
            ignore_conflicts=ignore_conflicts,
            update_conflicts=update_conflicts,
            update_fields=update_fields,
            unique_fields=unique_fields,
            progress=self._progress,
            together=MAX_ACTIONS if in_transactions else self._together,
        )
        self._result_cache = None
        return creation.create(list(objs))

    def bulk_update(self, objs: Iterable[DynamoModel], fields: Iterable[str], batch_size: int | None = None) -> int:
        """Save these attributes of each object, without signals, up to eight at once; the number of those still there.

        As ``save(update_fields=...)``, every key and unique value follows, and only what changed is sent.
        """
        self._result_cache = None
        return bulk.update(self.model, objs, fields, batch_size, self._progress, self._together)

    def on_progress(self, callback: Progress | None) -> Self:
        """Let ``callback(done, total)`` be called after each object that a bulk operation is done with.

        ``total`` is ``None`` where objects are written while they are read.
        """
        clone = self._chain()
        clone._progress = callback
        return clone

    def in_transactions(self) -> Self:
        """Let bulk operations write up to 100 actions in one TransactWriteItems: a hundredth of the requests.

        Each transaction is carried out wholly or not at all, and takes twice the write units. An object's action counts
        for one, and so does that of each unique value, counter and source of copies. It is about ``bulk_create()``,
        ``bulk_update()``, ``update()``, ``delete()``, ``hard_delete()`` and ``restore()``.
        https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
        """
        clone = self._chain()
        clone._together = MAX_ACTIONS
        return clone

    def _check_writable(self, name: str) -> None:
        if self.query.is_sliced:
            raise TypeError(f"Cannot use 'limit' or 'offset' with {name}.")
        if self._asked.columns is not None:
            raise TypeError(f"Cannot call {name} after .values() or .values_list()")
        self._check_rows()

    def _check_rows(self) -> None:
        computed = self._computation
        if computed is not None and computed.makes_rows:
            raise NotSupported(f"Rows that are {computed} cannot be written: write the objects.")

    def _written(self, write: Callable[[queryset_writes.Matches], T]) -> T:
        source = state_of(self).source()
        query = source.query(ordered=False)
        try:
            return write(
                queryset_writes.Matches(
                    self.model,
                    query,
                    lambda: objects.read(source),
                    source.is_empty,
                    self._progress,
                    self._together,
                    self,
                )
            )
        finally:
            self._result_cache = None

    def update_or_create(
        self,
        defaults: Mapping[str, object] | None = None,
        create_defaults: Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> tuple[M, bool]:
        """Update the object that matches, or create it; ``True`` if it was created."""
        updates = dict(defaults or {})
        obj, created = self.get_or_create(updates if create_defaults is None else create_defaults, **kwargs)
        if not created:
            for name, value in updates.items():
                setattr(obj, name, value() if callable(value) else value)
            obj.save()
        return obj, created

    # Django's writers of single rows; the model's own save_base() and delete() write.

    def _insert(self, *args: object, **kwargs: Any) -> Any:
        raise NotSupported("Items are written by save(), not by QuerySet._insert().")

    def _update(self, *args: object, **kwargs: Any) -> Any:
        raise NotSupported("Items are written by save(), not by QuerySet._update().")

    def _raw_delete(self, *args: object, **kwargs: Any) -> Any:
        raise NotSupported("Items are deleted by delete(), not by QuerySet._raw_delete().")


# As with Django's, a manager has no delete(): nobody deletes everything by leaving filter() out. Templates call none.
WritingQuerySet.delete.queryset_only = WritingQuerySet.hard_delete.queryset_only = True  # type: ignore[attr-defined]
WritingQuerySet.ahard_delete.queryset_only = True  # type: ignore[attr-defined]
WritingQuerySet.hard_delete.alters_data = WritingQuerySet.restore.alters_data = True  # type: ignore[attr-defined]
WritingQuerySet.ahard_delete.alters_data = WritingQuerySet.arestore.alters_data = True  # type: ignore[attr-defined]
WritingQuerySet.bulk_create.alters_data = WritingQuerySet.bulk_update.alters_data = True  # type: ignore[attr-defined]
