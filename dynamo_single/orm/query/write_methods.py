"""The write methods of a queryset: they change or create the objects that it matches or receives.

``queryset_update`` and ``bulk`` implement them; ``queryset`` combines these methods with the read methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from asgiref.sync import sync_to_async
from django.db import IntegrityError
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.items.async_safety import creates_plain_objects
from dynamo_single.orm.query.base import PlannedQuerySet
from dynamo_single.orm.requests.atomic_block import Block, current
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import Defaults, DynamoModel, M, are_plain
from dynamo_single.table.flow import Flow, call_sync, run
from dynamo_single.table.request import MAX_ACTIONS

if TYPE_CHECKING:
    from dynamo_single.orm.query import interpreted, write_by_key
    from dynamo_single.orm.results import objects
    from dynamo_single.orm.write import bulk, on_delete, queryset_update
    from dynamo_single.orm.write.batch_transactions import Progress
    from dynamo_single.orm.write.bulk import CreatedList
else:
    interpreted = LazyModule("dynamo_single.orm.query.interpreted")
    write_by_key = LazyModule("dynamo_single.orm.query.write_by_key")
    bulk = LazyModule("dynamo_single.orm.write.bulk")
    objects = LazyModule("dynamo_single.orm.results.objects")
    on_delete = LazyModule("dynamo_single.orm.write.on_delete")
    queryset_update = LazyModule("dynamo_single.orm.write.queryset_update")

T = TypeVar("T")

#: The methods that may write objects of other models too.
_DELETING = ("delete", "hard_delete", "restore")


class WritingQuerySet(PlannedQuerySet[M]):
    """The methods that write."""

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete each object as its own ``delete()`` does, under the queryset's conditions; the counts are by model.

        The order is ignored. One complete primary key is one DeleteItem if the deletion has no effects; otherwise the
        plan's requests read the objects.
        """
        return run(self._removed("delete", current()))

    def hard_delete(self) -> tuple[int, dict[str, int]]:
        """Delete each object permanently, with soft delete too, under the queryset's conditions."""
        return run(self._removed("hard_delete", current()))

    async def _removed(self, name: str, pending: Block | None) -> tuple[int, dict[str, int]]:
        write = getattr(queryset_update, name)
        if pending is None and self._deferred_filter is not None:
            read_and_delete = partial(self._written, partial(write, reads=True), pending)
            counts = await write_by_key.delete(self, read_and_delete, for_good=name == "hard_delete")
            if counts is not None:
                return counts
        self._check_writable(f"{name}()")
        return await self._written(write, pending)

    def restore(self) -> tuple[int, dict[str, int]]:
        """Take each object out of the trash, under the queryset's conditions; the counts are by model."""
        self._check_writable("restore()")
        return run(self._written(queryset_update.restore, current()))

    async def adelete(self) -> tuple[int, dict[str, int]]:
        """``delete()``, awaited."""
        if not self._writes_natively("delete"):
            return await super().adelete()
        return await self._removed("delete", current())

    async def ahard_delete(self) -> tuple[int, dict[str, int]]:
        """``hard_delete()``, awaited."""
        if not self._writes_natively("hard_delete"):
            return await sync_to_async(self.hard_delete)()
        return await self._removed("hard_delete", current())

    async def arestore(self) -> tuple[int, dict[str, int]]:
        """``restore()``, awaited."""
        if not self._writes_natively("restore"):
            return await sync_to_async(self.restore)()
        self._check_writable("restore()")
        return await self._written(queryset_update.restore, current())

    def update(self, **kwargs: object) -> int:
        """Set values on each object that matches: one Query, then one update an object, under the same conditions."""
        return run(self._updated(kwargs, current()))

    async def aupdate(self, **kwargs: object) -> int:
        """``update()``, awaited."""
        if not self._writes_natively("update"):
            return await super().aupdate(**kwargs)
        return await self._updated(kwargs, current())

    async def _updated(self, given: Mapping[str, object], pending: Block | None) -> int:
        if pending is None and self._deferred_filter is not None:
            written = await write_by_key.update(self, given)
            if written is not None:
                return written
        if self.query.is_sliced:
            raise TypeError("Cannot update a query once a slice has been taken.")
        self._check_rows()
        # Before any read, and even if the queryset is not planned.
        await knowledge.ask(registry.layout_of(self.model))
        if self._asked.interpreted or (self._asked.in_memory is not None and not self._asked.inside):
            interpretation = (await self._state()).interpretation
            if interpretation is not None and interpretation.chooses:
                return await interpreted.update(self, given, pending)
        annotations = self._query.annotations
        if annotations and interpreted.names_annotations(annotations, given.values()):
            return await interpreted.update(self, given, pending)
        try:
            assigned = queryset_update.read_assignments(self.model, given)
        except NotSupported as refusal:
            if self._asked.in_memory is None or not queryset_update.has_expressions(self.model, given):
                raise
            return await interpreted.update(self, given, pending, refusal)
        if not assigned:
            return 0
        return await self._written(partial(queryset_update.update, assigned=assigned), pending)

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
    ) -> CreatedList[M]:
        """Create objects without signals: one request or transaction each, up to eight at once, none over an item.

        Conflicts between two of the objects are found before any request. ``ignore_conflicts`` skips existing objects;
        ``update_conflicts`` sets their ``update_fields``, or overwrites them with whole objects. ``in_transactions`` is
        the method of that name; with it ``batch_size`` limits the objects of one transaction.
        """
        given = (batch_size, ignore_conflicts, update_conflicts, update_fields, unique_fields)
        return run(self._created(objs, given, current(), in_transactions=in_transactions))

    async def abulk_create(
        self,
        objs: Iterable[DynamoModel],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Iterable[str] | None = None,
        unique_fields: Iterable[str] | None = None,
        *,
        in_transactions: bool = False,
    ) -> CreatedList[M]:
        """``bulk_create()``, awaited."""
        given = (batch_size, ignore_conflicts, update_conflicts, update_fields, unique_fields)
        if not self._writes_natively("bulk_create"):
            return await sync_to_async(self.bulk_create)(objs, *given, in_transactions=in_transactions)
        return await self._created(objs, given, current(), in_transactions=in_transactions)

    async def _created(
        self, objs: Iterable[DynamoModel], given: bulk.Arguments, pending: Block | None, *, in_transactions: bool
    ) -> CreatedList[M]:
        together = MAX_ACTIONS if in_transactions else self._together
        creation = bulk.read_arguments(self.model, pending, given, self._progress, together)
        self._result_cache = None
        return await creation.create(list(objs), pending)

    def bulk_update(self, objs: Iterable[DynamoModel], fields: Iterable[str], batch_size: int | None = None) -> int:
        """Save these attributes of each object, without signals, up to eight at once; the number of those still there.

        As ``save(update_fields=...)``, every key and unique value follows, and only what changed is sent.
        """
        return run(self._bulk_updated(objs, fields, batch_size, current()))

    async def abulk_update(
        self, objs: Iterable[DynamoModel], fields: Iterable[str], batch_size: int | None = None
    ) -> int:
        """``bulk_update()``, awaited."""
        if not self._writes_natively("bulk_update"):
            return await sync_to_async(self.bulk_update)(objs, fields, batch_size)
        return await self._bulk_updated(objs, fields, batch_size, current())

    async def _bulk_updated(
        self, objs: Iterable[DynamoModel], fields: Iterable[str], batch_size: int | None, pending: Block | None
    ) -> int:
        self._result_cache = None
        return await bulk.bulk_update(self.model, objs, fields, batch_size, self._progress, self._together, pending)

    def on_progress(self, callback: Progress | None) -> Self:
        """Let ``callback(done, total)`` be called after each object that a bulk operation is done with.

        ``total`` is ``None`` if objects are written while they are read.
        """
        clone = self._chain()
        clone._progress = callback
        return clone

    def in_transactions(self) -> Self:
        """Let bulk operations write up to 100 actions in one TransactWriteItems: a hundredth of the requests.

        Each transaction is executed completely or not at all, and takes twice the write units. An object's action
        counts as one, as do those of each unique value, counter and source of copies. This applies to
        ``bulk_create()``, ``bulk_update()``, ``update()``, ``delete()``, ``hard_delete()`` and ``restore()``.
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
        if self._query.combinator:
            self._refuse_combined("update() or delete")
        computed = self._computation
        if computed is not None and computed.makes_rows:
            raise NotSupported(f"Cannot write rows that are {computed}. Write the objects.")

    def _writes_natively(self, name: str) -> bool:
        """Return whether an event loop may execute a write method directly."""
        models = on_delete.involved_models(self.model) if name in _DELETING else {self.model}
        return self._is_native() and are_plain(type(self), (name,)) and all(map(creates_plain_objects, models))

    async def _written(self, write: Callable[[queryset_update.QuerysetWrite], Flow[T]], pending: Block | None) -> T:
        # As in Django, no order counts: each object is written by itself.
        source = replace((await self._state()).source().unordered(), reversed=False)
        query = source.query()
        try:
            return await write(
                queryset_update.QuerysetWrite(
                    self.model,
                    query,
                    partial(objects.open_pages, source),
                    pending,
                    source.is_empty,
                    self._progress,
                    self._together,
                    self,
                )
            )
        finally:
            self._result_cache = None

    async def acreate(self, **kwargs: Any) -> M:
        """``create()``, awaited."""
        # An unknown attribute has Django's own error.
        if not (self._creates_natively() and kwargs.keys() <= self.model._settable()):
            return await super().acreate(**kwargs)
        obj: M = self.model(**kwargs)
        await obj.asave(force_insert=True, using=self.db)
        return obj

    def _creates_natively(self) -> bool:
        model = self.model
        return are_plain(type(self), ("create",)) and are_plain(model, ("__init__",)) and creates_plain_objects(model)

    async def aget_or_create(self, defaults: Defaults = None, **kwargs: object) -> tuple[M, bool]:
        """``get_or_create()``, awaited."""
        if not (self._is_native() and self._creates_natively() and are_plain(type(self), ("get_or_create",))):
            return await super().aget_or_create(defaults, **kwargs)
        return await self._got_or_created(defaults, kwargs)

    async def _got_or_created(self, defaults: Defaults, asked: Mapping[str, object]) -> tuple[M, bool]:
        # Django's own steps, without the SQL transaction around the creation.
        try:
            return await self._one(asked), False
        except self.model.DoesNotExist:
            values = await _resolved(self._extract_model_params(defaults, **asked))
            try:
                return await self.acreate(**values), True
            except IntegrityError:
                try:
                    return await self._one(asked), False
                except self.model.DoesNotExist:
                    pass
                raise

    async def aupdate_or_create(
        self,
        defaults: Defaults = None,
        create_defaults: Defaults = None,
        **kwargs: object,
    ) -> tuple[M, bool]:
        """``update_or_create()``, awaited."""
        plain = are_plain(type(self), ("get_or_create", "update_or_create"))
        if not (self._is_native() and self._creates_natively() and plain):
            return await super().aupdate_or_create(defaults, create_defaults, **kwargs)
        obj, created = await self._got_or_created(defaults if create_defaults is None else create_defaults, kwargs)
        if not created:
            for name, value in (await _resolved(defaults or {})).items():
                setattr(obj, name, value)
            await obj.asave()
        return obj, created

    def update_or_create(
        self,
        defaults: Defaults = None,
        create_defaults: Defaults = None,
        **kwargs: object,
    ) -> tuple[M, bool]:
        """Update the object that matches, or create it; ``True`` if it was created."""
        updates = dict(defaults or {})
        obj, created = self.get_or_create(updates if create_defaults is None else create_defaults, **kwargs)
        if not created:
            for name, value in updates.items():
                setattr(obj, name, value() if callable(value) else value)
            obj.save()
        return obj, created

    async def _one(self, asked: Mapping[str, object]) -> M:
        """``get()`` for a coroutine."""
        raise NotImplementedError

    # Private to Django.
    _extract_model_params: Any

    # Django's writers of single rows; the model's own save_base() and delete() write.

    def _insert(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotSupported("QuerySet._insert() does not write items. Call save() instead.")

    def _update(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotSupported("QuerySet._update() does not write items. Call save() instead.")

    def _raw_delete(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotSupported("QuerySet._raw_delete() does not delete items. Call delete() instead.")


async def _resolved(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values; call those that are callable in a thread, as Django does, because they are a project's
    code."""
    if not any(map(callable, values.values())):
        return dict(values)
    return await call_sync(lambda: {name: value() if callable(value) else value for name, value in values.items()})


# As in Django, a manager has no delete(), so that a missing filter() cannot delete everything. Templates must not call
# it.
WritingQuerySet.delete.queryset_only = WritingQuerySet.hard_delete.queryset_only = True  # type: ignore[attr-defined]
WritingQuerySet.adelete.queryset_only = WritingQuerySet.ahard_delete.queryset_only = True  # type: ignore[attr-defined]
WritingQuerySet.hard_delete.alters_data = WritingQuerySet.restore.alters_data = True  # type: ignore[attr-defined]
WritingQuerySet.ahard_delete.alters_data = WritingQuerySet.arestore.alters_data = True  # type: ignore[attr-defined]
WritingQuerySet.bulk_create.alters_data = WritingQuerySet.bulk_update.alters_data = True  # type: ignore[attr-defined]
