"""The managers ``user.groups`` and ``group.user_set``: who is in which group, and how that changes.

A user holds the identifiers of the groups, which decides; from them follows one membership item for each, which lists a
group's members. Both are written in the user's transaction. This module must not know permissions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from django.db import models
from django.db.models import Q
from django.db.models.expressions import Col
from django.db.models.sql.where import WhereNode
from msgspec.structs import replace

from dynamo_single.exceptions import DynamoSingleError, InvalidValue, NotSupported, StaleObject
from dynamo_single.orm.effects.write import is_gone
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.requests.atomic_block import Block, current
from dynamo_single.orm.results.state import Asked
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import Defaults, DynamoModel, all_plain
from dynamo_single.orm.write import batch_transactions
from dynamo_single.table.flow import Flow, is_run, local, pause, run, twin

if TYPE_CHECKING:
    _QuerySet = QuerySet[Any]
else:
    _QuerySet = object


# ``user.groups`` without regard to case: the names of one user's groups are few, and are compared in memory.
#
# Any other queryset needs a ``CanonicalAttribute`` for that. This module must not know memberships.

_COMPARED: dict[str, Callable[[str, str], bool]] = {
    "iexact": str.__eq__,
    "icontains": str.__contains__,
    "istartswith": str.startswith,
}


class GroupsAsked(Asked, frozen=True):
    """What is asked of the groups of one user, and which groups these are."""

    group_ids: tuple[str, ...] = ()


class GroupsQuerySet(_QuerySet):
    """The groups of one user. A condition without regard to case reads all of them first: one BatchGetItem."""

    def _reads_before(self) -> bool:
        return super()._reads_before() or self._is_folded()

    def _is_folded(self) -> bool:
        return isinstance(self._asked, GroupsAsked) and _has_folded(self.query.where)

    async def _narrowed(self) -> Self:
        if not self._is_folded():
            return await super()._narrowed()
        everything = self.model._default_manager.using_index("primary").consistent()
        asked: Any = self._asked
        groups = await everything.filter(pk__in=asked.group_ids)._read()
        narrowed = self.all()
        narrowed.query.where = _replaced(narrowed.query, self.query.where, groups)
        evaluated: Self = await super(GroupsQuerySet, narrowed)._narrowed()
        return evaluated


def _has_folded(where: WhereNode) -> bool:
    return any(_has_folded(each) if isinstance(each, WhereNode) else _is_folded(each) for each in where.children)


def _is_folded(condition: Any) -> bool:
    return getattr(condition, "lookup_name", None) in _COMPARED and isinstance(condition.lhs, Col)


def _replaced(query: Any, where: Any, groups: list[Any]) -> WhereNode:
    """The conditions with each one without regard to case as the keys of the groups that it holds for."""
    found = WhereNode(connector=where.connector, negated=where.negated)
    for child in where.children:
        if isinstance(child, WhereNode):
            found.children.append(_replaced(query, child, groups))
        elif _is_folded(child):
            compare, text = _COMPARED[child.lookup_name], str(child.rhs).casefold()
            values = ((group.pk, getattr(group, child.lhs.target.attname)) for group in groups)
            pks = [pk for pk, value in values if isinstance(value, str) and compare(value.casefold(), text)]
            found.children.append(query.build_where(Q(pk__in=pks)))
        else:
            found.children.append(child)
    return found


#: The most groups of one user: all of them are read by one BatchGetItem, and go with the user in one transaction.
MAX_GROUPS = 90
#: How often a change of a user's groups is made again because another writer was faster.
ATTEMPTS = 8
#: What the two managers write with.
WRITERS = {f"{prefix}{name}" for prefix in ("", "a") for name in ("add", "remove", "set", "clear", "create")} | {
    *("get_or_create", "aget_or_create", "update_or_create", "aupdate_or_create", "dissolved")
}
#: From the groups that a user is in, and the ones that are given, to those that the user will be in.
Change = Callable[[set[str], set[str]], set[str]]


async def change_groups(user: Any, change: Callable[[set[str]], set[str]]) -> None:
    """Change a user's groups: one transaction; a GetItem before it if the object is outdated or shows no change."""
    is_fresh = False
    for attempt in range(ATTEMPTS):
        held = set(user.group_ids or ())
        wanted = change(held)
        if wanted == held and is_fresh:
            return
        if wanted != held:
            try:
                await _save(user, held, wanted)
            except StaleObject as error:
                if is_gone(error) or attempt == ATTEMPTS - 1:
                    raise
                await pause(random.uniform(0, 0.02 * attempt))  # noqa: S311 - jitter is no secret
            else:
                return
        await twin(user, "refresh_from_db", fields=["group_ids"])
        is_fresh = True


async def _save(user: Any, held: set[str], wanted: set[str]) -> None:
    if len(wanted) > MAX_GROUPS and len(wanted) > len(held):
        raise InvalidValue(
            f"{secrecy.named(type(user), user.pk)} would be in {len(wanted)} groups; a user can be in {MAX_GROUPS}. "
            "Nothing was written. Give several groups' permissions to one group."
        )
    user.group_ids = wanted
    try:
        await twin(user, "save", update_fields=["group_ids"])
    except DynamoSingleError:
        user.group_ids = held
        raise


class RelatedManager:
    """What Django's manager of a many-to-many relation does; the model's default manager is behind it."""

    members_class: type
    groups_class: type
    #: What a manager of one of the two sides adds: what is there now, and how the given objects change it.
    _current: Callable[[], Flow[list[Any]]]
    _change: Callable[[Sequence[Any], Change], Flow[None]]

    def __init__(self, relation: Any, instance: Any) -> None:
        super().__init__()
        self.relation = relation
        self.model = relation.model
        self.instance = instance

    def add(self, *objs: object, through_defaults: Defaults = None) -> None:
        """Add objects, or those of a ``pk``; what is there already stays."""
        run(self.aadd(*objs, through_defaults=through_defaults))

    async def aadd(self, *objs: object, through_defaults: Defaults = None) -> None:
        """See ``add()``."""
        _refuse_defaults(through_defaults)
        await self._write(objs, set.union)

    def remove(self, *objs: Any) -> None:
        """Take objects out, or those of a ``pk``."""
        run(self.aremove(*objs))

    async def aremove(self, *objs: object) -> None:
        """See ``remove()``."""
        await self._write(objs, set.difference)

    def clear(self) -> None:
        """Take all out."""
        run(self.aclear())

    async def aclear(self) -> None:
        """See ``clear()``."""
        await self._write(await self._current(), set.difference)

    def set(self, objs: Iterable[object], *, clear: bool = False, through_defaults: Defaults = None) -> None:
        """Let exactly these objects be there; ``clear`` comes to the same."""
        run(self.aset(objs, clear=clear, through_defaults=through_defaults))

    async def aset(self, objs: Iterable[object], *, clear: bool = False, through_defaults: Defaults = None) -> None:
        """See ``set()``."""
        _refuse_defaults(through_defaults)
        self._check(self.instance)
        wanted = {obj.pk: obj for obj in await self._resolved(tuple(objs))}
        current = {obj.pk: obj for obj in await self._current()}
        await self._change([obj for pk, obj in current.items() if pk not in wanted], set.difference)
        await self._change([obj for pk, obj in wanted.items() if pk not in current], set.union)

    def create(self, *, through_defaults: Defaults = None, **kwargs: object) -> Any:
        """Create an object and add it."""
        return run(self.acreate(through_defaults=through_defaults, **kwargs))

    async def acreate(self, *, through_defaults: Defaults = None, **kwargs: object) -> Any:
        """See ``create()``."""
        _refuse_defaults(through_defaults)
        self._check(self.instance)
        obj = await self._behind("create", super(), **kwargs)
        await self.aadd(obj)
        return obj

    def get_or_create(
        self, defaults: Defaults = None, *, through_defaults: Defaults = None, **kwargs: object
    ) -> tuple[DynamoModel, bool]:
        """The object among those here that matches; if there is none, a new one that is added."""
        return run(self.aget_or_create(defaults, through_defaults=through_defaults, **kwargs))

    async def aget_or_create(
        self, defaults: Defaults = None, *, through_defaults: Defaults = None, **kwargs: object
    ) -> tuple[DynamoModel, bool]:
        """See ``get_or_create()``."""
        _refuse_defaults(through_defaults)
        self._check(self.instance)
        obj, created = await self._behind("get_or_create", super(), defaults, **kwargs)
        if created:
            await self.aadd(obj)
        return obj, created

    def update_or_create(
        self,
        defaults: Defaults = None,
        create_defaults: Defaults = None,
        *,
        through_defaults: Defaults = None,
        **kwargs: object,
    ) -> tuple[DynamoModel, bool]:
        """Update the object among those here that matches; if there is none, make a new one and add it."""
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
        _refuse_defaults(through_defaults)
        self._check(self.instance)
        obj, created = await self._behind("update_or_create", super(), defaults, create_defaults, **kwargs)
        if created:
            await self.aadd(obj)
        return obj, created

    async def _behind(self, name: str, behind: object, /, *args: object, **kwargs: object) -> Any:
        """What the model's default manager does; a method of a project's is called in a thread."""
        if is_run() or not all_plain(type(self), (name, "get_queryset")):
            return await local(partial(getattr(behind, name), *args, **kwargs))
        return await getattr(behind, f"a{name}")(*args, **kwargs)

    async def _write(self, objs: Sequence[object], change: Change) -> None:
        self._check(self.instance)
        found = await self._resolved(objs)
        if found:
            await self._change(found, change)

    async def _resolved(self, objs: Sequence[Any]) -> list[Any]:
        """The objects themselves; those that are given by ``pk`` are read: one request for each hundred."""
        found, keys = [], []
        for obj in objs:
            if isinstance(obj, models.Model):
                self._check(obj, self.model)
                found.append(obj)
            else:
                keys.append(obj)
        if keys:
            read = await twin(self.model._default_manager, "in_bulk", keys)
            missing = [key for key in keys if key not in read]
            if missing:
                hidden = secrecy.shown(self.model, missing[0])
                raise self.model.DoesNotExist(f"No {self.model._meta.label} has pk {hidden}. Nothing was written.")
            found += read.values()
        return found

    def _check(self, obj: Any, model: Any = models.Model) -> None:
        if not isinstance(obj, model):
            raise TypeError(f"{model._meta.object_name!r} instance expected, got {shown(obj)}")
        if obj._stored is None:
            raise ValueError(f"{shown(obj)} is not stored: save it before {self.relation.name} is changed.")


class GroupsManager(RelatedManager):
    """``user.groups``."""

    @property
    def prefetches(self) -> Any:
        """The model whose querysets ``prefetch_related()`` reads for it."""
        return self.model

    def get_queryset(self) -> Any:
        """The groups that the user is in, by their keys: one strongly consistent request; none without groups."""
        cached = getattr(self.instance, "_prefetched_objects_cache", {}).get(self.relation.name)
        if cached is not None:
            return cached
        self._queryset_class = self.groups_class
        behind: Any = super()
        found = _by_keys(behind.get_queryset(), self.instance.group_ids)
        if isinstance(found, GroupsQuerySet):
            found._asked = GroupsAsked(**_as_given(found._asked), group_ids=tuple(self.instance.group_ids or ()))
        return found

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """For ``prefetch_related("groups")``: one BatchGetItem for each hundred groups of all users."""
        users = {user.pk: user for user in instances}
        wanted = set().union(*(user.group_ids or () for user in users.values()))
        queryset = querysets[0] if querysets else self.model._default_manager.all()
        found = {group.pk: group for group in _by_keys(queryset, wanted)}
        related = []
        for pk, user in users.items():
            for group_id in sorted(found.keys() & (user.group_ids or set())):
                # Django tells by the object to whom it belongs, so each user gets one of its own.
                group = copy(found[group_id])
                group._of_user = pk
                related.append(group)
        return related, lambda group: group._of_user, lambda user: user.pk, False, self.relation.name, False

    async def aset(self, objs: Iterable[object], *, clear: bool = False, through_defaults: Defaults = None) -> None:
        """Let the user be in exactly these groups: one transaction."""
        _refuse_defaults(through_defaults)
        self._check(self.instance)
        await self._set_ids({group.pk for group in await self._resolved(tuple(objs))})

    async def aclear(self) -> None:
        """Let the user be in no group: one transaction."""
        self._check(self.instance)
        await self._set_ids(set())

    async def _set_ids(self, wanted: Any) -> None:
        self._forget()
        await change_groups(self.instance, lambda held: wanted)

    async def _change(self, objs: Sequence[DynamoModel], change: Change) -> None:
        given = {group.pk for group in objs}
        self._forget()
        await change_groups(self.instance, lambda held: change(held, given))

    def _forget(self) -> None:
        getattr(self.instance, "_prefetched_objects_cache", {}).pop(self.relation.name, None)


class MembersManager(RelatedManager):
    """``group.user_set``."""

    def get_queryset(self) -> Any:
        """The members: a Query for the memberships, and a strongly consistent BatchGetItem for each hundred users."""
        self._queryset_class = self.members_class
        behind: Any = super()
        queryset = behind.get_queryset()
        if not isinstance(queryset, MembersQuerySet):
            # The model's manager makes querysets of another class, which cannot wait with the first Query.
            return _by_keys(queryset, _memberships(self.relation.through, self.instance.pk)).filter(
                group_ids__contains=self.instance.pk
            )
        group = (self.relation.through, self.instance.pk)
        queryset._asked = MembersAsked(**_as_given(queryset._asked), group=group)
        return queryset

    async def dissolved(self) -> None:
        """Take all users out of a group that was deleted."""
        await self._change(await self._current(), set.difference)

    async def _current(self) -> list[DynamoModel]:
        found: list[Any] = await self.get_queryset()._read()
        return found

    async def _change(self, objs: Sequence[DynamoModel], change: Change) -> None:
        given = {self.instance.pk}

        async def write(user: DynamoModel, pending: Block | None) -> dict[str, int]:
            await change_groups(user, lambda held: change(held, given))
            return {user._meta.label: 1}

        # One after the other: all of them lie in the group's partition, and transactions get in each other's way.
        verb = "add" if change is set.union else "remove"
        await batch_transactions.BulkWrite(verb, self.model, current(), len(objs), several=False).write_each(
            objs, write
        )


# Templates call nothing that writes.
for _class in (RelatedManager, GroupsManager, MembersManager):
    for _name in WRITERS & vars(_class).keys():
        vars(_class)[_name].alters_data = True


class MembersAsked(Asked, frozen=True):
    """What is asked of the members of a ``group``: the model of its memberships, and its identifier."""

    group: tuple[Any, str] = (None, "")


class MembersQuerySet(_QuerySet):
    """A queryset of users that is narrowed to a group's members when it is evaluated or joined with another group's."""

    def __or__(self, other: object) -> MembersQuerySet:
        one, another = self._joinable(other)
        return super(MembersQuerySet, one).__or__(another)

    def __and__(self, other: object) -> MembersQuerySet:
        one, another = self._joinable(other)
        return super(MembersQuerySet, one).__and__(another)

    def __xor__(self, other: object) -> MembersQuerySet:
        one, another = self._joinable(other)
        return super(MembersQuerySet, one).__xor__(another)

    def _joinable(self, other: object) -> tuple[Any, Any]:
        # Querysets of the same group are joined as they are; one that asks for no group is refused as another kind.
        if isinstance(other, MembersQuerySet) and _group_of(other) != _group_of(self):
            return run(self._narrowed()), run(other._narrowed())
        return self, other

    def _reads_before(self) -> bool:
        return super()._reads_before() or isinstance(self._asked, MembersAsked)

    async def _narrowed(self) -> Self:
        """The queryset of the users that are members now: one Query a megabyte of memberships."""
        asked = self._asked
        if not isinstance(asked, MembersAsked):
            return await super()._narrowed()
        index = asked.using_index or "primary"
        narrowed = self._asking(replace(Asked(**_as_given(asked)), using_index=index, consistent=True))
        through, group_id = asked.group
        # The index may lag behind; what the user's own item says decides.
        ids = await _memberships(through, group_id)._read()
        narrowed.query.add_q(Q(pk__in=ids) & Q(group_ids__contains=group_id))
        return await narrowed._narrowed()


def _as_given(asked: Asked) -> dict[str, Any]:
    """What is asked besides a group, by name."""
    return {name: getattr(asked, name) for name in Asked.__struct_fields__}


def _group_of(queryset: MembersQuerySet) -> tuple[Any, str] | None:
    return queryset._asked.group if isinstance(queryset._asked, MembersAsked) else None


def _memberships(through: Any, group_id: str) -> Any:
    """The identifiers of the users that are in a group, as its memberships have them."""
    return through._default_manager.filter(group_id=group_id).values_list("user_id", flat=True)


def _by_keys(queryset: QuerySet[Any], ids: Iterable[str] | None) -> QuerySet[Any]:
    return queryset.using_index("primary").consistent().filter(pk__in=sorted(ids)) if ids else queryset.none()


def _refuse_defaults(through_defaults: Defaults) -> None:
    if through_defaults:
        raise NotSupported("through_defaults: a membership has no attributes of its own.")
