"""The managers ``user.groups`` and ``group.user_set``: the relation between users and groups.

The item of a user contains the identifiers of the groups and decides who is in a group. One membership item for each
of them lists the members of the group. One transaction writes both. This module must not know permissions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from django.db.models import Q
from django.db.models.expressions import Col
from django.db.models.sql.where import WhereNode
from msgspec.structs import replace

from dynamo_single.exceptions import DynamoSingleError, InvalidValue, NotSupported, StaleObject
from dynamo_single.orm.effects.write import is_gone
from dynamo_single.orm.query.many_to_many import RelatedManager
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.requests.atomic_block import Block, current
from dynamo_single.orm.results.state import Asked
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import Defaults, DynamoModel
from dynamo_single.orm.write import batch_transactions
from dynamo_single.table.flow import pause, run, twin

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
#: From the groups that a user is in to those that the user will be in.
Change = Callable[[set[str]], set[str]]


async def change_groups(user: Any, change: Change) -> None:
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


class MembershipManager(RelatedManager):
    """The manager of either side; memberships are derived from the users and have no attributes of their own."""

    #: The class of querysets that is mixed into the one of the default manager.
    narrowing: type

    async def _check(self, through_defaults: Defaults = None, *, adds: bool = False) -> None:
        if through_defaults:
            raise NotSupported("through_defaults: a membership has no attributes of its own.")
        self._check_stored(self.instance)

    def _check_stored(self, obj: Any) -> None:
        if obj._stored is None:
            raise ValueError(f"{shown(obj)} is not stored: save it before {self.end.name} is changed.")

    async def _find(self, keys: Sequence[Any], *, adds: bool) -> dict[Any, Any]:
        """Read the objects: one request for each hundred."""
        found: dict[Any, Any] = await twin(self.model._default_manager, "in_bulk", keys)
        return found


class GroupsManager(MembershipManager):
    """``user.groups``."""

    narrowing = GroupsQuerySet

    @property
    def prefetches(self) -> Any:
        """The model whose querysets ``prefetch_related()`` reads for it."""
        return self.model

    def get_queryset(self) -> Any:
        """The groups that the user is in, by their keys: one strongly consistent request; none without groups."""
        cached = self._prefetched.get(self.end.name)
        if cached is not None:
            return cached
        behind: Any = super()
        found = _by_keys(behind.get_queryset(), self.instance.group_ids)
        if isinstance(found, GroupsQuerySet):
            found._asked = GroupsAsked(**_as_given(found._asked), group_ids=tuple(self.instance.group_ids or ()))
        return found

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """For ``prefetch_related("groups")``: one BatchGetItem for each hundred groups of all users."""
        users = {user.pk: user for user in instances}
        pairs = [(pk, group_id) for pk, user in users.items() for group_id in sorted(user.group_ids or ())]
        queryset = querysets[0] if querysets else self.model._default_manager.all()
        return self._prefetch(pairs, _by_keys(queryset, {group_id for _, group_id in pairs}))

    async def _set(self, wanted: Mapping[str, Any], clear: bool, through_defaults: Defaults) -> None:
        """Let the user be in exactly these groups: one transaction."""
        await self._change(lambda held: {*wanted})

    async def _add(self, objs: Mapping[str, Any], through_defaults: Defaults = None) -> None:
        await self._change(lambda held: held | objs.keys())

    async def _remove(self, objs: Mapping[str, Any]) -> None:
        await self._change(lambda held: held - objs.keys())

    async def _clear(self) -> None:
        await self._change(lambda held: set())

    async def _change(self, change: Change) -> None:
        self._prefetched.pop(self.end.name, None)
        await change_groups(self.instance, change)


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


class MembersManager(MembershipManager):
    """``group.user_set``."""

    narrowing = MembersQuerySet

    def get_queryset(self) -> Any:
        """The members: a Query for the memberships, and a strongly consistent BatchGetItem for each hundred users."""
        behind: Any = super()
        queryset = behind.get_queryset()
        if not isinstance(queryset, MembersQuerySet):
            # The model's manager makes querysets of another class, which cannot wait with the first Query.
            return _by_keys(queryset, _memberships(self.through, self.instance.pk)).filter(
                group_ids__contains=self.instance.pk
            )
        group = (self.through, self.instance.pk)
        queryset._asked = MembersAsked(**_as_given(queryset._asked), group=group)
        return queryset

    async def dissolved(self) -> None:
        """Take all users out of a group that was deleted."""
        await self._clear()

    vars()["dissolved"].alters_data = True  # templates must not call it

    async def _set(self, wanted: Mapping[str, Any], clear: bool, through_defaults: Defaults) -> None:
        current = await self._current()
        await self._remove({pk: user for pk, user in current.items() if pk not in wanted})
        await self._add({pk: user for pk, user in wanted.items() if pk not in current})

    async def _add(self, objs: Mapping[str, Any], through_defaults: Defaults = None) -> None:
        await self._change("add", objs, lambda held: held | {self.instance.pk})

    async def _remove(self, objs: Mapping[str, Any]) -> None:
        await self._change("remove", objs, lambda held: held - {self.instance.pk})

    async def _clear(self) -> None:
        await self._remove(await self._current())

    async def _current(self) -> dict[str, Any]:
        return {user.pk: user for user in await self.get_queryset()._read()}

    async def _change(self, verb: str, users: Mapping[str, Any], change: Change) -> None:
        async def write(user: DynamoModel, pending: Block | None) -> dict[str, int]:
            await change_groups(user, change)
            return {user._meta.label: 1}

        # One after the other: all of them lie in the group's partition, and transactions get in each other's way.
        job = batch_transactions.BulkWrite(verb, self.model, current(), len(users), several=False)
        await job.write_each(users.values(), write)


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
