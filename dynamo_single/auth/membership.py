"""The managers ``user.groups`` and ``group.user_set``: the relation between users and groups.

The item of a user contains the identifiers of the groups and decides who is in a group. One membership item for each of
them lists the members of the group. One transaction writes both.

This module must not know permissions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynamo_single.auth.kept_keys import HoldersManager, KeptManager, KeysManager
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.terms import MAX_MEMBERS
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.schema import secrecy

#: The most groups of one user: one BatchGetItem reads all of them, and one transaction writes them with the user.
MAX_GROUPS = 90


class MembershipManager(KeptManager):
    """The base of both managers. Memberships are derived from users."""

    kept_in = "group_ids"

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


class MembersManager(MembershipManager, HoldersManager):
    """The manager ``group.user_set``."""

    def _narrow(self, queryset: Any) -> Any:
        """Return the members: a Query for the memberships, and a strongly consistent BatchGetItem per hundred users.

        Both are sent when the queryset is evaluated. It raises ``TooManyMatches`` for more than 10,000 memberships.
        """
        # The index of the memberships is eventually consistent. The user's own item is authoritative.
        memberships = self.through._default_manager.filter(group_id=self.instance.pk).allow_in_memory(MAX_MEMBERS)
        users = memberships.values_list("user_id", flat=True)
        whole = queryset.using_index("primary").consistent()
        return whole.filter(pk__in=users, group_ids__contains=self.instance.pk)

    async def dissolved(self) -> None:
        """Remove all users from a deleted group."""
        await self._clear()

    vars()["dissolved"].alters_data = True  # templates must not call it


def _by_keys(queryset: QuerySet[Any], ids: Iterable[str] | None) -> QuerySet[Any]:
    return queryset.using_index("primary").consistent().filter(pk__in=sorted(ids)) if ids else queryset.none()
