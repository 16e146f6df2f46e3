"""The other side of a reference: Django's manager of the objects that refer to one, made to save what it is given.

Django's ``add()`` and ``remove()`` write the rows behind the objects' backs. Here the objects know what they were read
as, so they are saved themselves. What is private to Django is the class that its descriptor makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models.fields.related_descriptors import ReverseManyToOneDescriptor
from django.utils.functional import cached_property

from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.schema.encoding.shown import shown
from dynamo_single.orm.schema.fields.fetching import in_mode_of
from dynamo_single.orm.schema.kinds import DynamoModel


class ReverseDescriptor(ReverseManyToOneDescriptor):  # type: ignore[type-arg]  # not generic at run time
    """``company.person_set``."""

    @cached_property
    def related_manager_cls(self) -> Any:
        """Django's manager class, with our writing."""
        return saving(super().related_manager_cls)


def saving(base: Any) -> type:
    """A related manager's class whose ``add``, ``remove`` and ``set`` save the objects that they are given."""
    # Django gives remove() to references that may be null only.
    mixin = Removing if hasattr(base, "remove") else Adding
    return type(base.__name__, (mixin, base), {"__module__": base.__module__})


def _without_slice(queryset: Any) -> tuple[Any, int, int | None]:
    """A queryset without its slice, which takes conditions, and where the slice began and ended."""
    whole = queryset.all()
    whole.query.clear_limits()
    return whole, queryset.query.low_mark, queryset.query.high_mark


class Adding:
    """What every manager of a reverse reference does; Django's is behind it."""

    instance: Any
    model: Any
    field: Any
    _check_fk_val: Any
    _remove_prefetched_objects: Any

    def __call__(self, *, manager: str) -> Any:
        behind: Any = super()
        return saving(type(behind.__call__(manager=manager)))(self.instance)

    def get_prefetch_querysets(self, instances: object, querysets: Any = None) -> Any:
        """For ``prefetch_related()``; of a sliced queryset one Query for each parent, limited to the slice."""
        if querysets and querysets[0].query.is_sliced:
            return self._sliced_for_each(instances, querysets[0])
        behind: Any = super()
        return behind.get_prefetch_querysets(instances, querysets)

    def _sliced_for_each(self, instances: Any, sliced: object) -> Any:
        """What Django asks of a database in one query with window functions, as it wants it."""
        whole, start, stop = _without_slice(sliced)
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
        queryset = in_mode_of(self.instance, queryset)
        if not queryset.query.is_sliced:
            return behind._apply_rel_filters(queryset)
        whole, start, stop = _without_slice(queryset)
        return behind._apply_rel_filters(whole)[start:stop]

    def add(self, *objs: Any, bulk: bool = True) -> None:
        """Let each object refer to this one: one update an object, also for one that did so when it was read.

        Where another writer has changed a key of it since, one GetItem and another update.
        """
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
                obj.save()
            if bulk or referred:
                self._name(obj)

    def set(self, objs: Any, *, bulk: bool = True, clear: bool = False) -> None:
        """Let exactly these objects refer to this one."""
        # What clear=True takes away first and gives back comes to the same, but the objects would not know.
        behind: Any = super()
        behind.set(objs, bulk=bulk, clear=False)

    def _check_model(self, obj: DynamoModel) -> None:
        if not isinstance(obj, self.model):
            raise TypeError(f"{self.model._meta.object_name!r} instance expected, got {shown(obj)}")

    def _name(self, obj: DynamoModel) -> None:
        """Write the reference of an object, whatever it is in the table; another version is not written over."""
        try:
            obj.save(update_fields=[self.field.name])
        except StaleObject as error:
            if error.expected is not None or not obj._follow_stored({self.field.attname}):
                raise
            obj.save(update_fields=[self.field.name])

    add.alters_data = set.alters_data = True  # type: ignore[attr-defined]  # templates call neither


class Removing(Adding):
    """The same for a reference that may be null."""

    def remove(self, *objs: Any, bulk: bool = True) -> None:
        """Let each object refer to nothing: one update an object.

        An object that the manager hides is left alone; of a manager that hides any, the objects are read before.
        """
        self._check_fk_val()
        owner = self.field.get_foreign_related_value(self.instance)
        for obj in objs:
            self._check_model(obj)
            if self.field.get_local_related_value(obj) != owner:
                raise self.field.remote_field.model.DoesNotExist(
                    f"{shown(obj)} is not related to {shown(self.instance)}."
                )
        given = self._given_by_manager(objs)
        for obj in given:
            setattr(obj, self.field.name, None)
            obj.save(update_fields=[self.field.name])

    def _given_by_manager(self, objs: Sequence[DynamoModel]) -> Sequence[Any]:
        """Those of some objects that the manager gives, as Django's ``remove()`` asks: it may hide some."""
        self._remove_prefetched_objects()
        manager: Any = self
        if not objs or manager.get_queryset()._gives_all(objs):
            return objs
        found = {obj.pk for obj in manager.filter(pk__in=[obj.pk for obj in objs]).order_by()}
        return [obj for obj in objs if obj.pk in found]

    remove.alters_data = True  # type: ignore[attr-defined]
