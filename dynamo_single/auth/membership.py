"""The managers ``user.groups`` and ``group.user_set``: the relation between users and groups.

The item of a user contains the identifiers of the groups and decides who is in a group. One membership item for each of
them lists the members of the group. One transaction writes both.

This module must not know permissions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from django.db.models import Q
from msgspec.structs import replace

from dynamo_single.auth.kept_keys import HoldersManager, KeptManager, KeysManager
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.results.state import Asked
from dynamo_single.orm.schema import secrecy
from dynamo_single.table.flow import run

if TYPE_CHECKING:
    _QuerySet = QuerySet[Any]
else:
    _QuerySet = object


#: The most groups of one user: one BatchGetItem reads all of them, and one transaction writes them with the user.
MAX_GROUPS = 90


class MembershipManager(KeptManager):
    """The base of both managers. Memberships are derived from users."""

    kept_in = "group_ids"
    #: A queryset class to mix into that of the default manager.
    narrowing: type | None = None

    def _check_set(self, obj: Any, held: set[str], wanted: set[str]) -> None:
        if len(wanted) > MAX_GROUPS and len(wanted) > len(held):
            raise InvalidValue(
                f"{secrecy.named(type(obj), obj.pk)} would be in {len(wanted)} groups; a user can be in {MAX_GROUPS}. "
                "Nothing was written. Give several groups' permissions to one group."
            )


class GroupsManager(MembershipManager, KeysManager):
    """The manager ``user.groups``."""

    @property
    def prefetches(self) -> Any:
        """The model of the querysets that ``prefetch_related()`` evaluates."""
        return self.model

    def _narrow(self, queryset: Any) -> Any:
        """Return the user's groups by their keys: one strongly consistent request, or none without groups.

        They are few, so that conditions and orders without a key are computed in memory.
        """
        ids = self.instance.group_ids or ()
        return _by_keys(queryset, ids).allow_in_memory(max(len(ids), MAX_GROUPS))

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

    def _narrow(self, queryset: Any) -> Any:
        """Return the members: a Query for the memberships, and a strongly consistent BatchGetItem per hundred users."""
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
