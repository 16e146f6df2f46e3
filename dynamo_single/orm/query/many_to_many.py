"""What ``server.users`` and ``user.servers`` give: the objects at the other end of a many-to-many relation's edges.

Each edge is an item of a model of its own, whose primary key is the two references together. This module must not know
how the relation is declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from asgiref.sync import sync_to_async
from django.db import models
from django.db.models.signals import m2m_changed
from msgspec import Struct

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.terms import MAX_MEMBERS
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import Defaults, DynamoModel


class End(Struct, frozen=True, eq=False):
    """One end of a relation, as its manager needs it.

    ``through`` is the edges' model, ``near`` the reference to the object that has the manager, ``far`` the one to what
    the manager gives. ``name`` is what a prefetch is kept under, ``reverse`` what ``m2m_changed`` is told.
    """

    through: Any
    near: Any
    far: Any
    name: str
    reverse: bool

    @property
    def model(self) -> Any:
        """What the manager gives."""
        return self.far.related_model

    def edges(self, pks: Sequence[object], *, consistent: bool = False) -> Any:
        """The edges of some objects; ``consistent`` ones from the table, if its partition is the reference alone."""
        name = self.near.attname
        given = {name: pks[0]} if len(pks) == 1 else {f"{name}__in": list(pks)}
        found = self.through._base_manager.order_by().filter(**given)
        partition = registry.layout_of(self.through).primary.partition.variables
        return found.using_index("primary").consistent() if consistent and {*partition} == {name} else found

    def edge(self, near: object, far: object, values: Mapping[str, object] | None = None) -> Any:
        """A new edge between two objects, given by their ``pk``."""
        return self.through(**{**(values or {}), self.near.attname: near, self.far.attname: far})


class EdgesManager:
    """What Django's manager of a many-to-many relation does; the other model's default manager is behind it."""

    #: It can be called, with the name of another manager; ``{{ server.users.all }}`` means the manager itself.
    do_not_call_in_templates: ClassVar[bool] = True

    def __init__(self, end: End, instance: Any) -> None:
        super().__init__()
        self.end = end
        self.model = end.model
        self.instance = instance
        self.through = end.through
        if instance.pk is None or instance.pk == "":
            raise ValueError(f"{shown(instance)} needs a pk before {end.name} can be used.")

    def __call__(self, *, manager: str) -> Any:
        """The same with what another manager of the model gives."""
        return manager_class(type(getattr(self.model, manager)))(self.end, self.instance)

    def get_queryset(self) -> Any:
        """The objects: a Query for the edges and a BatchGetItem for each hundred, when it is evaluated.

        Up to 10,000 edges, beyond which it is ``TooManyMatches``: ask the edges' own model, page by page.
        """
        cached = getattr(self.instance, "_prefetched_objects_cache", {}).get(self.end.name)
        if cached is not None:
            return cached
        behind: Any = super()
        edges = self.end.edges([self.instance.pk]).allow_in_memory(MAX_MEMBERS)
        ids = edges.values_list(self.end.far.attname, flat=True)
        return behind.get_queryset().filter(pk__in=ids)

    def count(self) -> int:
        """How many: one COUNT Query of the edges for each megabyte; all objects are read where some may be hidden."""
        cached = getattr(self.instance, "_prefetched_objects_cache", {}).get(self.end.name)
        if cached is not None or self._may_hide():
            return int(self.get_queryset().count())
        return int(self.end.edges([self.instance.pk]).count())

    async def acount(self) -> int:
        """See ``count()``."""
        return await sync_to_async(self.count)()

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """For ``prefetch_related()``: a Query for each object, and a BatchGetItem for each hundred of the others."""
        owners = {obj.pk: obj for obj in instances}
        pairs = [
            (getattr(edge, self.end.near.attname), getattr(edge, self.end.far.attname))
            for edge in self.end.edges(list(owners))
        ]
        behind: Any = super()
        queryset = querysets[0] if querysets else behind.get_queryset()
        wanted = list(dict.fromkeys(far for _, far in pairs))
        found = {obj.pk: obj for obj in queryset.filter(pk__in=wanted)} if wanted else {}
        asked = state_of(queryset)
        if asked.ordering or asked.reversed:
            places = {pk: place for place, pk in enumerate(found)}
            pairs = sorted([pair for pair in pairs if pair[1] in places], key=lambda pair: places[pair[1]])
        related = []
        for near, far in pairs:
            if far in found:
                # Django tells by the object to whom it belongs, so each owner gets one of its own.
                obj = copy(found[far])
                obj._of_edge = near
                related.append(obj)
        return related, lambda obj: obj._of_edge, lambda owner: owner.pk, False, self.end.name, False

    def add(self, *objs: Any, through_defaults: Defaults = None) -> None:
        """Make edges to objects, or to those of a ``pk``; what is there already stays as it is.

        A request for each edge, or a transaction for several where other items follow from them; a BatchGetItem before
        it for objects that are given by ``pk``, and one for the edges if anybody listens to ``m2m_changed``. Raises
        ``ValueError`` where this object, or one of the others, is not stored.
        """
        self._write_block()
        if objs:
            self._refuse_unsaved()
            self._add(self._pks(objs), through_defaults)

    def remove(self, *objs: Any) -> None:
        """Delete the edges to objects, or to those of a ``pk``: a BatchGetItem, and a request for each edge.

        Several edges are one transaction if other items follow from them.
        """
        self._write_block()
        self._remove(self._pks(objs, stored=False))

    def clear(self) -> None:
        """Delete all edges: a Query, and a request for each edge. Where it is interrupted, calling it again goes on."""
        self._write_block()
        self._clear()

    def set(self, objs: Iterable[object], *, clear: bool = False, through_defaults: Defaults = None) -> None:
        """Let exactly these objects be there: a Query, and what ``add()`` and ``remove()`` send for what differs.

        Edges to objects that the manager does not show, such as those in the trash, stay, unless ``clear`` takes all.
        """
        self.set_base(objs, clear=clear, through_defaults=through_defaults)

    def set_base(
        self, objs: Iterable[Any], *, clear: bool = False, through_defaults: Defaults = None, raw: bool = False
    ) -> None:
        """``set()``, under the name by which fixtures call it since Django 6.1, ``raw`` then, as signals are told.

        What a fixture names by ``pk`` is not asked for.
        """
        self._write_block()
        raw = raw or getattr(self.instance._state, "of_fixture", False)
        # What a fixture names may come after it.
        if not raw:
            self._refuse_unsaved()
        wanted = dict.fromkeys(self._pks(tuple(objs), stored=not raw))
        if clear:
            self._clear(raw=raw)
        held = set() if clear else set(self._edges().values_list(self.end.far.attname, flat=True))
        self._remove(self._shown([pk for pk in held if pk not in wanted]), raw=raw)
        self._add([pk for pk in wanted if pk not in held], through_defaults, raw=raw)

    def create(self, *, through_defaults: Defaults = None, **kwargs: object) -> Any:
        """Create an object and an edge to it."""
        behind: Any = super()
        self._write_block()
        self._refuse_unsaved()
        obj = behind.create(**kwargs)
        self._add([obj.pk], through_defaults)
        return obj

    def get_or_create(
        self, defaults: Defaults = None, *, through_defaults: Defaults = None, **kwargs: object
    ) -> tuple[DynamoModel, bool]:
        """The object among those here that matches; if there is none, a new one with an edge to it."""
        behind: Any = super()
        self._write_block()
        self._refuse_unsaved()
        obj, created = behind.get_or_create(defaults, **kwargs)
        if created:
            self._add([obj.pk], through_defaults)
        return obj, created

    def update_or_create(
        self,
        defaults: Defaults = None,
        create_defaults: Defaults = None,
        *,
        through_defaults: Defaults = None,
        **kwargs: object,
    ) -> tuple[DynamoModel, bool]:
        """Update the object among those here that matches; if there is none, make a new one and an edge to it."""
        behind: Any = super()
        self._write_block()
        self._refuse_unsaved()
        obj, created = behind.update_or_create(defaults, create_defaults, **kwargs)
        if created:
            self._add([obj.pk], through_defaults)
        return obj, created

    async def aadd(self, *objs: object, through_defaults: Defaults = None) -> None:
        """See ``add()``."""
        await sync_to_async(self.add)(*objs, through_defaults=through_defaults)

    async def aremove(self, *objs: object) -> None:
        """See ``remove()``."""
        await sync_to_async(self.remove)(*objs)

    async def aclear(self) -> None:
        """See ``clear()``."""
        await sync_to_async(self.clear)()

    async def aset(self, objs: Iterable[object], *, clear: bool = False, through_defaults: Defaults = None) -> None:
        """See ``set()``."""
        await sync_to_async(self.set)(objs, clear=clear, through_defaults=through_defaults)

    async def acreate(self, *, through_defaults: Defaults = None, **kwargs: object) -> Any:
        """See ``create()``."""
        return await sync_to_async(self.create)(through_defaults=through_defaults, **kwargs)

    async def aget_or_create(self, defaults: Defaults = None, **kwargs: Any) -> tuple[DynamoModel, bool]:
        """See ``get_or_create()``."""
        return await sync_to_async(self.get_or_create)(defaults, **kwargs)

    async def aupdate_or_create(
        self, defaults: Defaults = None, create_defaults: Defaults = None, **kwargs: Any
    ) -> tuple[DynamoModel, bool]:
        """See ``update_or_create()``."""
        return await sync_to_async(self.update_or_create)(defaults, create_defaults, **kwargs)

    def _may_hide(self) -> bool:
        behind: Any = super()
        return registry.has_soft_delete(self.model) or not behind.get_queryset()._is_plain()

    def _shown(self, pks: list[object]) -> list[object]:
        """Those that the manager shows: a BatchGetItem for each hundred where it may hide some."""
        if not pks or not self._may_hide():
            return pks
        behind: Any = super()
        known = {obj.pk for obj in behind.get_queryset().filter(pk__in=pks).consistent()}
        return [pk for pk in pks if pk in known]

    def _write_block(self) -> None:
        if atomic_block.current() is not None:
            raise NotSupported(
                f"{self.end.name} is changed by reading which edges there are, which an atomic() block cannot. Within "
                f"a block create or delete {self.through._meta.label} objects themselves."
            )

    def _clear(self, *, raw: bool = False) -> None:
        self._told("clear", None, lambda: self._delete(self._edges()), raw=raw)

    def _add(self, pks: Sequence[Any], through_defaults: Any, *, raw: bool = False) -> None:
        edges = {pk: self.end.edge(self.instance.pk, pk, _resolved(through_defaults)) for pk in pks}
        if edges and m2m_changed.has_listeners(self.through):
            there = set(self._edges_of(list(edges)).values_list(self.end.far.attname, flat=True))
            edges = {pk: edge for pk, edge in edges.items() if pk not in there}
        together = bool(effects_of(self.through))

        def create() -> None:
            if edges:
                self.through._base_manager.bulk_create(
                    [*edges.values()], ignore_conflicts=True, in_transactions=together
                )

        self._told("add", set(edges), create, raw=raw)

    def _refuse_unsaved(self) -> None:
        """Raise ``ValueError`` where the object itself is not stored: a GetItem for one that was made by its ``pk``."""
        if not self.instance._state.adding or self.end.near.attribute.checked:  # such a creation is refused by itself
            return
        model = type(self.instance)
        if not model._base_manager.consistent().filter(pk=self.instance.pk).exists():
            raise ValueError(f"{shown(self.instance)} is not stored: save it before {self.end.name} is changed.")

    def _remove(self, pks: Sequence[Any], *, raw: bool = False) -> None:
        self._told("remove", set(pks), lambda: self._delete(self._edges_of(pks)) if pks else None, raw=raw)

    def _delete(self, edges: Any) -> None:
        """Delete edges: a request for each, or a transaction for several where other items follow from them."""
        (edges.in_transactions() if effects_of(self.through) else edges).delete()

    def _edges(self) -> Any:
        """All edges of the object, to change them."""
        return self.end.edges([self.instance.pk], consistent=True)

    def _edges_of(self, pks: Sequence[object]) -> Any:
        """The edges to some objects, by their keys."""
        keys = [self.end.edge(self.instance.pk, pk).pk for pk in pks]
        return self.through._base_manager.order_by().filter(pk__in=keys).using_index("primary").consistent()

    def _told(self, action: str, pks: Any, write: Any, *, raw: bool) -> None:
        """Write, with ``m2m_changed`` around it."""
        getattr(self.instance, "_prefetched_objects_cache", {}).pop(self.end.name, None)
        told = {
            "sender": self.through,
            "instance": self.instance,
            "reverse": self.end.reverse,
            "model": self.model,
            "pk_set": pks,
            "raw": raw,
            "using": None,
        }
        if pks is None or pks:
            m2m_changed.send(action=f"pre_{action}", **told)
            write()
            m2m_changed.send(action=f"post_{action}", **told)

    def _pks(self, objs: Sequence[object], *, stored: bool = True) -> list[object]:
        """The ``pk`` of each object, once; what is given by ``pk`` has to be ``stored``."""
        found: dict[Any, None] = {}
        keys = []
        for obj in objs:
            if isinstance(obj, models.Model):
                if not isinstance(obj, self.model):
                    raise TypeError(f"{self.model._meta.object_name!r} instance expected, got {shown(obj)}")
                if obj.pk is None or obj._state.adding:
                    raise ValueError(f"{shown(obj)} is not stored: save it before it is added to {self.end.name}.")
                found[obj.pk] = None
            else:
                keys.append(self.end.far.attribute.prepare(obj))
                found[keys[-1]] = None
        if keys and stored and not self.end.far.attribute.checked:
            there = self.model._base_manager.consistent().in_bulk(keys)
            missing = next((key for key in keys if key not in there), None)
            if missing is not None:
                hidden = secrecy.shown(self.model, missing)
                raise self.model.DoesNotExist(f"No {self.model._meta.label} has pk {hidden}; nothing was written.")
        return list(found)


for _name in ("add", "remove", "clear", "set", "create", "get_or_create", "update_or_create"):
    for _each in (_name, f"a{_name}"):
        vars(EdgesManager)[_each].alters_data = True  # templates call none of them


def _resolved(defaults: Defaults) -> dict[str, object]:
    """The values for an edge; each that can be called is called for it, as in Django."""
    return {name: value() if callable(value) else value for name, value in (defaults or {}).items()}


def manager_class(base: Any) -> type:
    """The relation's manager with a class of managers behind it."""
    return type("ManyToManyManager", (EdgesManager, base), {"__module__": base.__module__})


class EdgesDescriptor:
    """``server.users``, or ``user.servers`` where it is ``reverse``."""

    def __init__(self, rel: Any, *, reverse: bool) -> None:
        self.rel = rel
        self.field = rel.field
        self.reverse = reverse

    @property
    def through(self) -> Any:
        """The edges' model, which ``m2m_changed`` has as its sender."""
        return self.rel.through

    @cached_property
    def end(self) -> End:
        """The end that this is of the relation."""
        near, far = self.field.m2m_field_name(), self.field.m2m_reverse_field_name()
        if self.reverse:
            near, far = far, near
        options = self.through._meta
        name = self.rel.accessor_name if self.reverse else self.field.name
        return End(self.through, options.get_field(near), options.get_field(far), name, self.reverse)

    @cached_property
    def _manager_class(self) -> type:
        return manager_class(type(self.end.model._default_manager))

    def __get__(self, instance: object, owner: object) -> Any:
        return self if instance is None else self._manager_class(self.end, instance)

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise TypeError(
            f"Direct assignment to the {'reverse' if self.reverse else 'forward'} side of a many-to-many set is "
            "prohibited. Use set() instead."
        )
