"""The managers of many-to-many relations: ``server.users`` and ``user.servers`` contain the objects at the other end.

``RelatedManager`` has Django's methods and leaves the storage of the edges to a subclass. ``EdgesManager`` stores each
edge as an item of a separate model, whose primary key is the two references; ``auth.membership`` stores the groups of a
user. This module must not know how the relation is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from asgiref.sync import sync_to_async
from django.db import models
from django.db.models.signals import m2m_changed
from msgspec import Struct

from dynamo_single.exceptions import NotSupported
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.terms import MAX_MEMBERS
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.fields.fetching import with_mode_of
from dynamo_single.orm.schema.fields.references import without_slice
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import Defaults, DynamoModel, all_plain
from dynamo_single.table.flow import call_sync, is_run, run

if TYPE_CHECKING:
    from dynamo_single.orm.effects import all_effects
    from dynamo_single.orm.write import batch_deletes
else:
    all_effects = LazyModule("dynamo_single.orm.effects.all_effects")
    batch_deletes = LazyModule("dynamo_single.orm.write.batch_deletes")


class End(Struct, frozen=True, eq=False):
    """One end of a relation.

    ``through`` is the model of the edges, ``near`` its reference to the object that has the manager and ``far`` its
    reference to the objects that the manager returns. ``name`` is the key of prefetched objects, ``reverse`` an
    argument of ``m2m_changed``.
    """

    through: Any
    near: Any
    far: Any
    name: str
    reverse: bool

    @property
    def model(self) -> Any:
        """The model of the objects that the manager returns."""
        return self.far.related_model

    def edges(self, pks: Sequence[object], *, consistent: bool = False) -> Any:
        """Return the edges of objects; ``consistent`` reads the table if its partition is the reference alone."""
        name = self.near.attname
        given = {name: pks[0]} if len(pks) == 1 else {f"{name}__in": list(pks)}
        found = self.through._base_manager.order_by().filter(**given)
        partition = registry.layout_of(self.through).primary.partition.variables
        return found.using_index("primary").consistent() if consistent and {*partition} == {name} else found

    def edge(self, near: object, far: object, values: Mapping[str, object] | None = None) -> Any:
        """Return a new edge between two objects, given their ``pk``."""
        return self.through(**{**(values or {}), self.near.attname: near, self.far.attname: far})


class RelatedManager:
    """The methods of Django's manager of a many-to-many relation.

    The default manager of the other model follows it in the bases. A subclass stores the edges: it implements the
    methods that raise ``NotImplementedError`` here.
    """

    #: Whether a fixture is being loaded: it may name objects that follow later.
    _raw = False

    def __init__(self, end: End, instance: Any) -> None:
        super().__init__()
        self.end = end
        self.model = end.model
        self.instance = instance
        self.through = end.through

    def get_queryset(self) -> Any:
        """Return the related objects, or those that ``prefetch_related()`` has read."""
        cached = self._prefetched.get(self.end.name)
        return self._apply_rel_filters(self._everything()) if cached is None else cached

    def _apply_rel_filters(self, queryset: Any) -> Any:
        """Return the related objects of a queryset; Django's name, which ``Prefetch(queryset=...)`` calls too."""
        if not queryset.query.is_sliced:
            return self._narrow(queryset)
        whole, start, stop = without_slice(queryset)
        return self._narrow(whole)[start:stop]

    def _everything(self) -> Any:
        """Return the queryset of the other model's default manager."""
        behind: Any = super()
        return behind.get_queryset()

    def add(self, *objs: Any, through_defaults: Defaults = None) -> None:
        """Add objects, or the objects of a ``pk``; keep existing edges unchanged."""
        run(self.aadd(*objs, through_defaults=through_defaults))

    async def aadd(self, *objs: object, through_defaults: Defaults = None) -> None:
        """See ``add()``."""
        await self._check(through_defaults, adds=bool(objs))
        if objs:
            await self._add(await self._resolved(objs), through_defaults)

    def remove(self, *objs: Any) -> None:
        """Remove objects, or the objects of a ``pk``."""
        run(self.aremove(*objs))

    async def aremove(self, *objs: object) -> None:
        """See ``remove()``."""
        await self._check()
        if objs:
            await self._remove(await self._resolved(objs, adds=False))

    def clear(self) -> None:
        """Remove all objects."""
        run(self.aclear())

    async def aclear(self) -> None:
        """See ``clear()``."""
        await self._check()
        await self._clear()

    def set(self, objs: Iterable[object], *, clear: bool = False, through_defaults: Defaults = None) -> None:
        """Add and remove objects until exactly these are related; ``clear`` first deletes edges that are items."""
        run(self.aset(objs, clear=clear, through_defaults=through_defaults))

    def set_base(
        self, objs: Iterable[Any], *, clear: bool = False, through_defaults: Defaults = None, raw: bool = False
    ) -> None:
        """Do what ``set()`` does; fixtures call this name since Django 6.1. Signals receive ``raw``.

        Objects that a fixture names by ``pk`` are not read.
        """
        run(self.aset(objs, clear=clear, through_defaults=through_defaults, raw=raw))

    async def aset(
        self, objs: Iterable[Any], *, clear: bool = False, through_defaults: Defaults = None, raw: bool = False
    ) -> None:
        """See ``set()``."""
        manager = copy(self)
        manager._raw = raw or getattr(self.instance._state, "of_fixture", False)
        await manager._check(through_defaults, adds=True)
        await manager._set(await manager._resolved(objs), clear, through_defaults)

    def create(self, *, through_defaults: Defaults = None, **kwargs: object) -> Any:
        """Create an object and add it."""
        return run(self.acreate(through_defaults=through_defaults, **kwargs))

    async def acreate(self, *, through_defaults: Defaults = None, **kwargs: object) -> Any:
        """See ``create()``."""
        return await self._made("create", super(), through_defaults, **kwargs)

    def get_or_create(
        self, defaults: Defaults = None, *, through_defaults: Defaults = None, **kwargs: object
    ) -> tuple[DynamoModel, bool]:
        """Return the related object that matches; if none does, create one and add it."""
        return run(self.aget_or_create(defaults, through_defaults=through_defaults, **kwargs))

    async def aget_or_create(
        self, defaults: Defaults = None, *, through_defaults: Defaults = None, **kwargs: object
    ) -> tuple[DynamoModel, bool]:
        """See ``get_or_create()``."""
        found: tuple[DynamoModel, bool] = await self._made(
            "get_or_create", super(), through_defaults, defaults, **kwargs
        )
        return found

    def update_or_create(
        self,
        defaults: Defaults = None,
        create_defaults: Defaults = None,
        *,
        through_defaults: Defaults = None,
        **kwargs: object,
    ) -> tuple[DynamoModel, bool]:
        """Update the related object that matches; if none does, create one and add it."""
        return run(self.aupdate_or_create(defaults, create_defaults, through_defaults=through_defaults, **kwargs))

    async def aupdate_or_create(
        self,
        defaults: Defaults = None,
        create_defaults: Defaults = None,
        *,
        through_defaults: Defaults = None,
        **kwargs: object,
    ) -> tuple[DynamoModel, bool]:
        """See ``update_or_create()``."""
        found: tuple[DynamoModel, bool] = await self._made(
            "update_or_create", super(), through_defaults, defaults, create_defaults, **kwargs
        )
        return found

    async def _made(self, name: str, behind: object, through_defaults: Any, /, *args: object, **kwargs: object) -> Any:
        """Call the default manager, in a thread if the project overrides it, and add the object that it created."""
        await self._check(through_defaults, adds=True)
        if is_run() or not all_plain(type(self), (name, "get_queryset")):
            found = await call_sync(partial(getattr(behind, name), *args, **kwargs))
        else:
            found = await getattr(behind, f"a{name}")(*args, **kwargs)
        obj, created = found if isinstance(found, tuple) else (found, True)
        if created:
            await self._add(await self._resolved([obj]), through_defaults)
        return found

    async def _resolved(self, objs: Iterable[object], *, adds: bool = True) -> dict[Any, Any]:
        """Return the objects by ``pk``, and ``None`` for each ``pk`` that need not be read."""
        found: dict[Any, Any] = {}
        for obj in objs:
            if not isinstance(obj, models.Model):
                found.setdefault(self._key(obj))
                continue
            if not isinstance(obj, self.model):
                raise TypeError(f"{self.model._meta.object_name!r} instance expected, got {shown(obj)}")
            self._check_stored(obj)
            found[obj.pk] = obj
        keys = [key for key, obj in found.items() if obj is None]
        there = await self._find(keys, adds=adds) if keys else {}
        missing = [key for key in keys if key not in there]
        if missing:
            hidden = secrecy.shown(self.model, missing[0])
            raise self.model.DoesNotExist(f"No {self.model._meta.label} has pk {hidden}. Nothing was written.")
        return found | there

    def _key(self, pk: object) -> Any:
        """Return the ``pk`` of a related object in its stored type."""
        return self.end.far.attribute.prepare(pk)

    def _prefetch(self, pairs: Sequence[tuple[Any, Any]], queryset: Any, narrowed: Callable[[Any], Any]) -> Any:
        """Return the result of ``get_prefetch_querysets()`` for the two ends of each edge and the related objects.

        ``narrowed`` returns the queryset of the objects at the ends of the edges. A slice is that of each owner.
        """
        whole, start, stop = without_slice(queryset)
        chosen = narrowed(whole)
        found = {obj.pk: obj for obj in chosen}
        pairs = [pair for pair in pairs if pair[1] in found]
        asked = state_of(chosen)
        if asked.ordering or asked.reversed:
            places = {pk: place for place, pk in enumerate(found)}
            pairs = sorted(pairs, key=lambda pair: places[pair[1]])
        if queryset.query.is_sliced:
            owned: dict[Any, list[tuple[Any, Any]]] = {}
            for pair in pairs:
                owned.setdefault(pair[0], []).append(pair)
            pairs = [pair for edges in owned.values() for pair in edges[start:stop]]
        return self._prefetched_from(pairs, found)

    def _prefetched_from(self, pairs: Sequence[tuple[Any, Any]], found: Mapping[Any, Any]) -> Any:
        """Return the same for related objects that have been read, by ``pk``."""
        related = []
        for near, far in pairs:
            if far in found:
                # Django finds the owner by the object, so each owner needs a separate copy.
                obj = copy(found[far])
                obj._of_edge = near
                related.append(obj)
        return related, lambda obj: obj._of_edge, lambda owner: owner.pk, False, self.end.name, False

    @property
    def _prefetched(self) -> dict[str, Any]:
        """The related objects that ``prefetch_related()`` has read, by name."""
        return getattr(self.instance, "_prefetched_objects_cache", {})

    def _narrow(self, queryset: Any) -> Any:
        """Return the objects of a queryset that are related."""
        raise NotImplementedError

    async def _check(self, through_defaults: Defaults = None, *, adds: bool = False) -> None:
        """Raise an error if the edges of the object cannot be changed."""
        raise NotImplementedError

    def _check_stored(self, obj: Any) -> None:
        """Raise ``ValueError`` if a related object is not stored."""
        raise NotImplementedError

    async def _find(self, keys: Sequence[Any], *, adds: bool) -> dict[Any, Any]:
        """Return the stored objects by ``pk``, and ``None`` for each ``pk`` that need not be read."""
        raise NotImplementedError

    async def _add(self, objs: Mapping[Any, Any], through_defaults: Defaults = None) -> None:
        """Create the edges to objects, given by ``pk``."""
        raise NotImplementedError

    async def _remove(self, objs: Mapping[Any, Any]) -> None:
        """Delete the edges to objects, given by ``pk``."""
        raise NotImplementedError

    async def _set(self, wanted: Mapping[Any, Any], clear: bool, through_defaults: Defaults) -> None:
        """Create and delete edges until they lead to exactly these objects, given by ``pk``."""
        raise NotImplementedError

    async def _clear(self) -> None:
        """Delete all edges."""
        raise NotImplementedError


for _name in ("add", "remove", "clear", "set", "create", "get_or_create", "update_or_create"):
    for _each in (_name, f"a{_name}"):
        vars(RelatedManager)[_each].alters_data = True  # templates call none of them
vars(RelatedManager)["set_base"].alters_data = True


class EdgesManager(RelatedManager):
    """``server.users``: each edge is an item.

    - ``add()`` creates the edges by ``bulk_create()``, in transactions if other items depend on them. Before that it
      sends a BatchGetItem for each hundred objects that are given by ``pk``, one for what a hundred edges copy, and
      one for the edges if ``m2m_changed`` has receivers. It raises ``ValueError`` if this object, or one of the others,
      is not stored.
    - ``remove()`` sends a BatchGetItem for each hundred edges, then a transaction for up to 100 edges if other items
      depend on them, else a BatchWriteItem for each 25. Transactions that change the same counter are sent one after
      the other. One edge without dependent items is one DeleteItem.
    - ``clear()`` sends a Query, then what ``remove()`` sends. If it is interrupted, call it again.
    - ``set()`` sends a Query, then the requests of ``add()`` and ``remove()`` for the difference. It keeps edges to
      objects that the manager hides, such as those in the trash, unless ``clear`` is true.
    """

    #: Templates must not call the manager: ``{{ server.users.all }}`` means the manager itself.
    do_not_call_in_templates: ClassVar[bool] = True

    def __init__(self, end: End, instance: Any) -> None:
        super().__init__(end, instance)
        if instance.pk is None or instance.pk == "":
            raise ValueError(f"{shown(instance)} needs a pk before {end.name} can be used.")

    def __call__(self, *, manager: str) -> Any:
        """Return the related objects of another manager of the model."""
        return manager_class(EdgesManager, type(getattr(self.model, manager)))(self.end, self.instance)

    def _narrow(self, queryset: Any) -> Any:
        """Return the related objects: a Query for the edges and a BatchGetItem for each hundred objects.

        Both are sent when the queryset is evaluated. It raises ``TooManyMatches`` for more than 10,000 edges: query the
        model of the edges by pages instead.
        """
        edges = self.end.edges([self.instance.pk]).allow_in_memory(MAX_MEMBERS)
        return with_mode_of(self.instance, queryset).filter(pk__in=edges.values_list(self.end.far.attname, flat=True))

    def count(self) -> int:
        """Count the objects: a COUNT Query for each megabyte of edges; it reads the objects if some may be hidden."""
        cached = self._prefetched.get(self.end.name)
        if cached is not None or self._may_hide():
            return int(self.get_queryset().count())
        return int(self.end.edges([self.instance.pk]).count())

    async def acount(self) -> int:
        """See ``count()``."""
        return await sync_to_async(self.count)()

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """Read for ``prefetch_related()``: a Query for each owner, a BatchGetItem for each hundred related objects."""
        owners = {obj.pk: obj for obj in instances}
        pairs = [
            (getattr(edge, self.end.near.attname), getattr(edge, self.end.far.attname))
            for edge in self.end.edges(list(owners))
        ]
        queryset = querysets[0] if querysets else self._everything()
        wanted = list(dict.fromkeys(far for _, far in pairs))
        return self._prefetch(pairs, queryset, lambda whole: whole.filter(pk__in=wanted) if wanted else whole.none())

    async def _set(self, wanted: Mapping[Any, Any], clear: bool, through_defaults: Defaults) -> None:
        if clear:
            await self._clear()
        held = [] if clear else await self._edges().values_list(self.end.far.attname, flat=True)._read()
        gone = await call_sync(partial(self._shown, [pk for pk in held if pk not in wanted]))
        await self._remove(dict.fromkeys(gone))
        await self._add({pk: obj for pk, obj in wanted.items() if pk not in held}, through_defaults)

    def _may_hide(self) -> bool:
        return registry.has_soft_delete(self.model) or not self._everything()._is_plain()

    def _shown(self, pks: list[object]) -> list[object]:
        """Return the objects that the manager does not hide: a BatchGetItem for each hundred if it may hide some."""
        if not pks or not self._may_hide():
            return pks
        known = {obj.pk for obj in self._everything().filter(pk__in=pks).consistent()}
        return [pk for pk in pks if pk in known]

    async def _check(self, through_defaults: Defaults = None, *, adds: bool = False) -> None:
        """Refuse blocks, and additions to an object that is not stored: a GetItem if it was not read."""
        if atomic_block.current() is not None:
            raise NotSupported(
                f"Cannot change {self.end.name} in an atomic() block, because this reads the existing edges. "
                f"Create or delete {self.through._meta.label} objects instead."
            )
        # A fixture may name objects that follow later. The transaction of a checked edge checks this itself.
        if not adds or self._raw or not self.instance._state.adding or self.end.near.attribute.checked:
            return
        stored = type(self.instance)._base_manager.consistent().filter(pk=self.instance.pk)
        if not await call_sync(stored.exists):
            raise ValueError(
                f"Cannot change {self.end.name} of {shown(self.instance)}, which is not stored. Save it first."
            )

    def _check_stored(self, obj: Any) -> None:
        if obj.pk is None or obj._state.adding:
            raise ValueError(f"Cannot add {shown(obj)} to {self.end.name}: it is not stored. Save it first.")

    async def _find(self, keys: Sequence[Any], *, adds: bool) -> dict[Any, Any]:
        if not adds or self._raw or self.end.far.attribute.checked:
            return dict.fromkeys(keys)
        found: dict[Any, Any] = await call_sync(partial(self.model._base_manager.consistent().in_bulk, keys))
        return found

    async def _add(self, objs: Mapping[Any, Any], through_defaults: Defaults = None) -> None:
        await call_sync(partial(self._create_edges, list(objs), through_defaults))

    def _create_edges(self, pks: Sequence[Any], through_defaults: Defaults) -> None:
        self._prefetched.pop(self.end.name, None)
        edges = {pk: self.end.edge(self.instance.pk, pk, _resolved(through_defaults)) for pk in pks}
        if edges and m2m_changed.has_listeners(self.through):
            there = set(self._edges_of(list(edges)).values_list(self.end.far.attname, flat=True))
            edges = {pk: edge for pk, edge in edges.items() if pk not in there}
        if edges:
            self._tell("pre_add", set(edges))
            self.through._base_manager.bulk_create(
                [*edges.values()], ignore_conflicts=True, in_transactions=bool(all_effects.effects_of(self.through))
            )
            self._tell("post_add", set(edges))

    async def _remove(self, objs: Mapping[Any, Any]) -> None:
        await self._delete("remove", set(objs), self._edges_of(list(objs)))

    async def _clear(self) -> None:
        await self._delete("clear", None, self._edges())

    async def _delete(self, action: str, pks: Any, edges: Any) -> None:
        """Delete edges: a transaction for several if other items depend on them, else a BatchWriteItem for each 25.

        A single edge is deleted without a read if no other item depends on it.
        """
        self._prefetched.pop(self.end.name, None)
        if pks is not None and not pks:
            return
        await call_sync(partial(self._tell, f"pre_{action}", pks))
        if (pks is None or len(pks) > 1) and batch_deletes.has_plain_deletion(self.through):
            await batch_deletes.delete_each(self.through, edges._pages())
        else:
            await call_sync(edges.in_transactions().delete)
        await call_sync(partial(self._tell, f"post_{action}", pks))

    def _edges(self) -> Any:
        """Return all edges of the object, to change them."""
        return self.end.edges([self.instance.pk], consistent=True)

    def _edges_of(self, pks: Sequence[object]) -> Any:
        """Return the edges to objects, by their keys."""
        keys = [self.end.edge(self.instance.pk, pk).pk for pk in pks]
        return self.through._base_manager.order_by().filter(pk__in=keys).using_index("primary").consistent()

    def _tell(self, action: str, pks: Any) -> None:
        """Send ``m2m_changed``, and drop the prefetched objects."""
        self._prefetched.pop(self.end.name, None)
        m2m_changed.send(
            self.through,
            action=action,
            instance=self.instance,
            reverse=self.end.reverse,
            model=self.model,
            pk_set=pks,
            raw=self._raw,
            using=None,
        )


def _resolved(defaults: Defaults) -> dict[str, object]:
    """Return the values for an edge; callables are called for each edge, as in Django."""
    return {name: value() if callable(value) else value for name, value in (defaults or {}).items()}


def manager_class(kind: type[RelatedManager], base: type) -> type:
    """Return the class of a relation's manager, based on a class of managers."""
    return type(kind.__name__, (kind, base), {"__module__": base.__module__})


class RelationDescriptor:
    """The base of the descriptors of relations: an object's attribute is the ``manager`` at its end."""

    manager: type[RelatedManager]
    #: What an error advises besides ``set()``.
    _instead = "instead"

    @cached_property
    def end(self) -> End:
        """This end of the relation."""
        raise NotImplementedError

    @cached_property
    def _manager_class(self) -> Any:
        return manager_class(self.manager, type(self.end.model._default_manager))

    def __get__(self, instance: object, owner: object) -> Any:
        return self if instance is None else self._manager_class(self.end, instance)

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise TypeError(
            f"Direct assignment to the {'reverse' if self.end.reverse else 'forward'} side of a many-to-many set is "
            f"prohibited. Use {self.end.name}.set() {self._instead}."
        )


class EdgesDescriptor(RelationDescriptor):
    """``server.users``, or ``user.servers`` where it is ``reverse``."""

    manager = EdgesManager

    def __init__(self, rel: Any, *, reverse: bool) -> None:
        self.rel = rel
        self.field = rel.field
        self.reverse = reverse

    @property
    def through(self) -> Any:
        """The model of the edges, which sends ``m2m_changed``."""
        return self.rel.through

    @cached_property
    def end(self) -> End:
        """This end of the relation."""
        near, far = self.field.m2m_field_name(), self.field.m2m_reverse_field_name()
        if self.reverse:
            near, far = far, near
        options = self.through._meta
        name = self.rel.accessor_name if self.reverse else self.field.name
        return End(self.through, options.get_field(near), options.get_field(far), name, self.reverse)
