"""``user.groups`` without regard to case: the names of one user's groups are few, and are compared in memory.

Any other queryset needs a ``CanonicalAttribute`` for that. This module must not know memberships.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from django.db.models import Q
from django.db.models.expressions import Col
from django.db.models.sql.where import WhereNode

from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.results.state import Asked

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
