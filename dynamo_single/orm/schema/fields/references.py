"""The other side of a reference: Django's manager of the objects that refer to one, made to save what it is given.

Django's ``add()`` and ``remove()`` write rows without updating the objects. Here the objects have the state that they
were read in, so they are saved themselves. The class that Django's descriptor creates is private to Django. The
objects' and querysets' own methods send requests; asynchronous variants await theirs, unless this would bypass a
project's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models.fields.related_descriptors import ReverseManyToOneDescriptor
from django.utils.functional import cached_property

from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.schema.fields.fetching import with_mode_of
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import DynamoModel, all_plain
from dynamo_single.table.flow import call_method, run


class ReverseDescriptor(ReverseManyToOneDescriptor):  # type: ignore[type-arg]  # not generic at run time
    """``company.person_set``."""

    @cached_property
    def related_manager_cls(self) -> type:
        """Django's manager class, with our writing."""
        return saving_manager_class(super().related_manager_cls)


def saving_manager_class(base: Any) -> type:
    """A related manager's class whose ``add``, ``remove`` and ``set`` save the objects that they are given."""
    # Django gives remove() to references that may be null only.
    mixin = NullableReverseManagerMixin if hasattr(base, "remove") else ReverseManagerMixin
    return type(base.__name__, (mixin, base), {"__module__": base.__module__})


def without_slice(queryset: Any) -> tuple[Any, int, int | None]:
    """Return a queryset without its slice, so that it accepts conditions, and the bounds of the slice."""
    whole = queryset.all()
    whole.query.clear_limits()
    return whole, queryset.query.low_mark, queryset.query.high_mark


class ReverseManagerMixin:
    """The methods of every manager of a reverse reference, in front of Django's."""

    instance: Any
    model: Any
    field: Any
    _check_fk_val: Any
    _remove_prefetched_objects: Any

    @property
    def prefetches(self) -> Any:
        """The model whose querysets ``prefetch_related()`` reads for it."""
        return self.model

    def __call__(self, *, manager: str) -> Any:
        behind: Any = super()
        return saving_manager_class(type(behind.__call__(manager=manager)))(self.instance)

    def get_prefetch_querysets(self, instances: object, querysets: Any = None) -> Any:
        """For ``prefetch_related()``; of a sliced queryset one Query for each parent, limited to the slice."""
        if querysets and querysets[0].query.is_sliced:
            return self._sliced_for_each(instances, querysets[0])
        behind: Any = super()
        return behind.get_prefetch_querysets(instances, querysets)

    def _sliced_for_each(self, instances: Any, sliced: object) -> Any:
        """Return the rows that Django would query with window functions, in the same form."""
        whole, start, stop = without_slice(sliced)
        found = []
        for parent in instances:
            (pk,) = self.field.get_foreign_related_value(parent)
            for child in whole.filter(**{self.field.attname: pk})[start:stop]:
                self.field.set_cached_value(child, parent)
                found.append(child)
        name = self.field.remote_field.cache_name
        return found, self.field.get_local_related_value, self.field.get_foreign_related_value, False, name, False

    def _apply_rel_filters(self, queryset: Any) -> Any:
        behind: Any = super()
        queryset = with_mode_of(self.instance, queryset)
        if not queryset.query.is_sliced:
            return behind._apply_rel_filters(queryset)
        whole, start, stop = without_slice(queryset)
        return behind._apply_rel_filters(whole)[start:stop]

    def add(self, *objs: DynamoModel, bulk: bool = True) -> None:
        """Make each object refer to this one: one update per object, even if it already did when it was read.

        If another process has changed a key of it since, one GetItem and another update.
        """
        run(self._added(objs, bulk))

    async def aadd(self, *objs: DynamoModel, bulk: bool = True) -> None:
        """``add()``, awaited."""
        await (self._added(objs, bulk) if self._is_ours("add") else sync_to_async(self.add)(*objs, bulk=bulk))

    async def _added(self, objs: Sequence[DynamoModel], bulk: bool) -> None:
        self._check_fk_val()
        for obj in objs:
            self._check_model(obj)
            if bulk and obj._state.adding:
                raise ValueError(f"{shown(obj)} instance isn't saved. Use bulk=False or save the object first.")
        self._remove_prefetched_objects()
        owner = self.field.get_foreign_related_value(self.instance)
        for obj in objs:
            referred = not obj._state.adding and self.field.get_local_related_value(obj) == owner
            setattr(obj, self.field.name, self.instance)
            if not bulk:
                await call_method(obj, "save")
            if bulk or referred:
                await self._name(obj)

    def set(self, objs: Iterable[DynamoModel], *, bulk: bool = True, clear: bool = False) -> None:
        """Make exactly these objects refer to this one."""
        # With clear=True, removing and adding an object again has the same result, but the objects would not be
        # updated.
        if all_plain(type(self), ("add", "remove")):
            run(self._set(objs, bulk))
            return
        # Django's calls a project's own.
        behind: Any = super()
        behind.set(objs, bulk=bulk, clear=False)

    async def aset(self, objs: Iterable[DynamoModel], *, bulk: bool = True, clear: bool = False) -> None:
        """``set()``, awaited."""
        if not self._is_ours("set", "add", "remove"):
            await sync_to_async(self.set)(objs, bulk=bulk)
            return
        await self._set(objs, bulk)

    async def _set(self, objs: Any, bulk: bool) -> None:
        self._check_fk_val()
        # Before anything is taken away: it may be a queryset.
        wanted = await objs._read() if hasattr(objs, "_read") else objs
        await self._added(tuple(wanted), bulk)

    async def acreate(self, **kwargs: object) -> Any:
        """``create()``, awaited."""
        return await self._of_manager("create", **kwargs)

    async def aget_or_create(self, **kwargs: object) -> Any:
        """``get_or_create()``, awaited."""
        return await self._of_manager("get_or_create", **kwargs)

    async def aupdate_or_create(self, **kwargs: object) -> Any:
        """``update_or_create()``, awaited."""
        return await self._of_manager("update_or_create", **kwargs)

    async def _of_manager(self, name: str, /, **kwargs: object) -> Any:
        if not self._is_ours(name):
            return await sync_to_async(getattr(self, name))(**kwargs)
        self._check_fk_val()
        kwargs[self.field.name] = self.instance
        manager: Any = self
        return await getattr(manager.get_queryset(), f"a{name}")(**kwargs)

    def _is_ours(self, *names: str) -> bool:
        """Return whether the manager's methods call no code of a project's."""
        return all_plain(type(self), (*names, "get_queryset"))

    def _check_model(self, obj: DynamoModel) -> None:
        if not isinstance(obj, self.model):
            raise TypeError(f"{self.model._meta.object_name!r} instance expected, got {shown(obj)}")

    async def _name(self, obj: DynamoModel) -> None:
        """Write the reference of an object, whatever it is in the table; another version is not written over."""
        try:
            await call_method(obj, "save", update_fields=[self.field.name])
        except StaleObject as error:
            if error.expected is not None or not await obj._follow_stored({self.field.attname}):
                raise
            await call_method(obj, "save", update_fields=[self.field.name])

    add.alters_data = set.alters_data = aadd.alters_data = aset.alters_data = True  # type: ignore[attr-defined]  # templates call none
    acreate.alters_data = aget_or_create.alters_data = aupdate_or_create.alters_data = True  # type: ignore[attr-defined]


class NullableReverseManagerMixin(ReverseManagerMixin):
    """The same for a reference that may be null."""

    def remove(self, *objs: Any, bulk: bool = True) -> None:
        """Let each object refer to nothing: one update an object.

        An object that the manager hides is left alone; of a manager that hides any, the objects are read before.
        """
        run(self._removed(objs))

    async def aremove(self, *objs: DynamoModel, bulk: bool = True) -> None:
        """``remove()``, awaited."""
        await (self._removed(objs) if self._is_ours("remove") else sync_to_async(self.remove)(*objs))

    async def _removed(self, objs: Sequence[DynamoModel]) -> None:
        self._check_fk_val()
        owner = self.field.get_foreign_related_value(self.instance)
        for obj in objs:
            self._check_model(obj)
            if self.field.get_local_related_value(obj) != owner:
                raise self.field.remote_field.model.DoesNotExist(
                    f"{shown(obj)} is not related to {shown(self.instance)}."
                )
        for obj in await self._given_by_manager(objs):
            setattr(obj, self.field.name, None)
            await call_method(obj, "save", update_fields=[self.field.name])

    async def aclear(self, *, bulk: bool = True) -> None:
        """``clear()``, awaited: without ``bulk`` each object is saved, with its signals."""
        if not self._is_ours("clear"):
            await sync_to_async(self.clear)(bulk=bulk)
            return
        self._check_fk_val()
        self._remove_prefetched_objects()
        manager: Any = self
        if bulk:
            await manager.get_queryset().aupdate(**{self.field.name: None})
            return
        for obj in await manager.get_queryset()._read():
            setattr(obj, self.field.name, None)
            await obj.asave(update_fields=[self.field.name])

    async def _set(self, objs: Any, bulk: bool) -> None:
        self._check_fk_val()
        wanted = tuple(await objs._read() if hasattr(objs, "_read") else objs)
        manager: Any = self
        former = set(await manager.get_queryset().all()._read())
        # An object without a pk cannot be looked up: the error comes before any removal.
        new, given = [obj for obj in wanted if obj not in former], set(wanted)
        await self._removed([obj for obj in former if obj not in given])
        await self._added(new, bulk)

    async def _given_by_manager(self, objs: Sequence[DynamoModel]) -> Sequence[Any]:
        """Return the objects that the manager returns, as for Django's ``remove()``: it may hide some."""
        self._remove_prefetched_objects()
        manager: Any = self
        if not objs or manager.get_queryset()._gives_all(objs):
            return objs
        given = await manager.filter(pk__in=[obj.pk for obj in objs]).order_by()._read()
        found = {obj.pk for obj in given}
        return [obj for obj in objs if obj.pk in found]

    clear: Any
    remove.alters_data = aremove.alters_data = aclear.alters_data = True  # type: ignore[attr-defined]  # as above
