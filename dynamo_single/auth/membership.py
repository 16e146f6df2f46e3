"""The managers ``user.groups`` and ``group.user_set``: the relation between users and groups.

The item of a user contains the identifiers of the groups and decides who is in a group. One membership item for each of
them lists the members of the group. One transaction writes both.

Queries on ``user.groups`` may ignore case, because a user has few groups and their names are compared in memory. Other
querysets need a ``CanonicalAttribute`` for that. This module must not know permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from django.db.models import Q
from django.db.models.expressions import Col
from django.db.models.sql.where import WhereNode
from msgspec.structs import replace

from dynamo_single.auth.kept_keys import HoldersManager, KeptManager, KeysManager
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.results.state import Asked
from dynamo_single.orm.schema import secrecy
from dynamo_single.table.flow import call_method, run

if TYPE_CHECKING:
    _QuerySet = QuerySet[Any]
else:
    _QuerySet = object


_COMPARED: dict[str, Callable[[str, str], bool]] = {
    "iexact": str.__eq__,
    "icontains": str.__contains__,
    "istartswith": str.startswith,
}


class GroupsAsked(Asked, frozen=True):
    """A query for the groups of one user, with the identifiers of these groups."""

    group_ids: tuple[str, ...] = ()


class GroupsQuerySet(_QuerySet):
    """The groups of one user. A condition that ignores case first reads all of them: one BatchGetItem."""

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
    """Return the conditions, with each condition that ignores case replaced by the keys of the matching groups."""
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


#: The most groups of one user: one BatchGetItem reads all of them, and one transaction writes them with the user.
MAX_GROUPS = 90


class MembershipManager(KeptManager):
    """The base of both managers. Memberships are derived from users."""

    kept_in = "group_ids"
    #: The queryset class that is mixed into the class of the default manager.
    narrowing: type

    def _check_set(self, obj: Any, held: set[str], wanted: set[str]) -> None:
        if len(wanted) > MAX_GROUPS and len(wanted) > len(held):
            raise InvalidValue(
                f"{secrecy.named(type(obj), obj.pk)} would be in {len(wanted)} groups; a user can be in {MAX_GROUPS}. "
                "Nothing was written. Give several groups' permissions to one group."
            )

    async def _find(self, keys: Sequence[Any], *, adds: bool) -> dict[Any, Any]:
        """Read the objects, unless a fixture names them: one request for each hundred."""
        if self._raw:
            return dict.fromkeys(keys)
        found: dict[Any, Any] = await call_method(self.model._default_manager, "in_bulk", keys)
        return found


class GroupsManager(MembershipManager, KeysManager):
    """The manager ``user.groups``."""

    narrowing = GroupsQuerySet

    @property
    def prefetches(self) -> Any:
        """The model of the querysets that ``prefetch_related()`` evaluates."""
        return self.model

    def get_queryset(self) -> Any:
        """Return the user's groups by their keys: one strongly consistent request, or none without groups."""
        cached = self._prefetched.get(self.end.name)
        if cached is not None:
            return cached
        behind: Any = super()
        found = _by_keys(behind.get_queryset(), self.instance.group_ids)
        if isinstance(found, GroupsQuerySet):
            found._asked = GroupsAsked(**_as_given(found._asked), group_ids=tuple(self.instance.group_ids or ()))
        return found

    def get_prefetch_querysets(self, instances: Any, querysets: Any = None) -> Any:
        """Return what ``prefetch_related("groups")`` needs: one BatchGetItem for each hundred groups of all users."""
        users = {user.pk: user for user in instances}
        pairs = [(pk, group_id) for pk, user in users.items() for group_id in sorted(user.group_ids or ())]
        queryset = querysets[0] if querysets else self.model._default_manager.all()
        wanted = {group_id for _, group_id in pairs}
        return self._prefetch(pairs, queryset, lambda whole: _by_keys(whole, wanted))


class MembersAsked(Asked, frozen=True):
    """A query for the members of a ``group``, which is the model of its memberships and its identifier."""

    group: tuple[Any, str] = (None, "")


class MembersQuerySet(_QuerySet):
    """A queryset of users, narrowed to a group's members when it is evaluated or combined with another group's."""

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
        # Querysets of the same group are combined as they are. A queryset without a group is rejected as another kind.
        if isinstance(other, MembersQuerySet) and _group_of(other) != _group_of(self):
            return run(self._narrowed()), run(other._narrowed())
        return self, other

    def _reads_before(self) -> bool:
        return super()._reads_before() or isinstance(self._asked, MembersAsked)

    async def _narrowed(self) -> Self:
        """Return the queryset of the current members: one Query per megabyte of memberships."""
        asked = self._asked
        if not isinstance(asked, MembersAsked):
            return await super()._narrowed()
        index = asked.using_index or "primary"
        narrowed = self._asking(replace(Asked(**_as_given(asked)), using_index=index, consistent=True))
        through, group_id = asked.group
        # The index is eventually consistent. The user's own item is authoritative.
        ids = await _memberships(through, group_id)._read()
        narrowed.query.add_q(Q(pk__in=ids) & Q(group_ids__contains=group_id))
        return await narrowed._narrowed()


class MembersManager(MembershipManager, HoldersManager):
    """The manager ``group.user_set``."""

    narrowing = MembersQuerySet

    def get_queryset(self) -> Any:
        """Return the members: a Query for the memberships, and a strongly consistent BatchGetItem per hundred users."""
        behind: Any = super()
        queryset = behind.get_queryset()
        if not isinstance(queryset, MembersQuerySet):
            # The querysets of the model's manager have another class, which cannot delay the first Query.
            return _by_keys(queryset, _memberships(self.through, self.instance.pk)).filter(
                group_ids__contains=self.instance.pk
            )
        group = (self.through, self.instance.pk)
        queryset._asked = MembersAsked(**_as_given(queryset._asked), group=group)
        return queryset

    async def dissolved(self) -> None:
        """Remove all users from a deleted group."""
        await self._clear()

    vars()["dissolved"].alters_data = True  # templates must not call it


def _as_given(asked: Asked) -> dict[str, Any]:
    """Return the parts of a query by name, without the group."""
    return {name: getattr(asked, name) for name in Asked.__struct_fields__}


def _group_of(queryset: MembersQuerySet) -> tuple[Any, str] | None:
    return queryset._asked.group if isinstance(queryset._asked, MembersAsked) else None


def _memberships(through: Any, group_id: str) -> Any:
    """Return the identifiers of the users in a group, according to its memberships."""
    return through._default_manager.filter(group_id=group_id).values_list("user_id", flat=True)


def _by_keys(queryset: QuerySet[Any], ids: Iterable[str] | None) -> QuerySet[Any]:
    return queryset.using_index("primary").consistent().filter(pk__in=sorted(ids)) if ids else queryset.none()
