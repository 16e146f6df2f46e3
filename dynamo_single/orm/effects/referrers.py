"""Find the objects that refer to others by one reference: children, holders of copies, referrers of a moved object.

Every deletion, restoration, move, count and change of a copy finds the dependent objects here. An index may lag, so the
app can read the objects that it returns again from the table. This module does not write.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from msgspec import Struct

from dynamo_single.exceptions import NoAccessPattern
from dynamo_single.orm.conditions.terms import MAX_MEMBERS
from dynamo_single.orm.plan.plan import Visibility
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.references import Referrers, references_to
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.request import MAX_BATCH_KEYS

_VISIBILITIES: Final[tuple[Visibility, ...]] = ("all", "live", "deleted")


class ReferrerQuery(Struct, frozen=True):
    """A query of the objects with one reference that meet ``conditions``.

    ``still`` returns whether an object belongs to it, given its item in an index or in the table.
    """

    children: Any  # of the class Children, which a type checker treats as a descriptor here
    visibility: Visibility = "all"
    conditions: Mapping[str, Any] = {}
    still: Callable[[Any], bool] | None = None

    def queryset(self, pks: Sequence[object]) -> Any:
        """Return the queryset of the objects that refer to one of up to a hundred ``pks``.

        It is a consistent read of the table if that has their key, else a read of an index.
        """
        name = self.children.field.attname
        given = {name: pks[0]} if len(pks) == 1 else {f"{name}__in": list(pks)}
        given |= {**self.children.conditions, **self.conditions}
        found = self._everything().with_visibility(self.visibility).filter(**given)
        return found.using_index("primary").consistent() if self.children.is_by_table else found

    async def pages(self, pks: Sequence[object], *, again: bool = False) -> AsyncGenerator[list[Any], None]:
        """Yield the objects, up to a hundred at a time and at least one; ``again`` as in ``belonging()``."""
        async with aclosing(self.queryset(pks)._pages()) as pages:
            async for page in pages:
                shown = await self.belonging(page, pks)
                for start in range(0, len(shown), MAX_BATCH_KEYS):
                    some = shown[start : start + MAX_BATCH_KEYS]
                    found = await self.belonging(some, pks, again=True) if again else some
                    if found:
                        yield found

    async def belonging(self, found: Sequence[Any], pks: Sequence[object], *, again: bool = False) -> list[Any]:
        """Return the objects of the query; ``again`` reads those from an index again from the table."""
        if again and not self.children.is_by_table:
            return await self.reread(found, pks)
        return [*found] if self.still is None else [*filter(self.still, found)]

    async def reread(self, found: Sequence[Any], pks: Sequence[object]) -> list[Any]:
        """Return the objects that belong to the query by the table: one BatchGetItem for each hundred of them."""
        name, fresh = self.children.field.attname, list[Any]()
        for start in range(0, len(found), MAX_MEMBERS):
            some = [obj.pk for obj in found[start : start + MAX_MEMBERS]]
            fresh += await self._everything().filter(pk__in=some).consistent()._read()
        fixed = self.children.conditions.items()
        return [
            obj
            for obj in fresh
            if getattr(obj, name) in pks
            and all(getattr(obj, attname) == value for attname, value in fixed)
            and (self.still is None or self.still(obj))
        ]

    def _everything(self) -> Any:
        # Without Meta.ordering, which no key may have.
        return self.children.model._base_manager.order_by()


async def queries_by_key(model: type[DynamoModel], pk: object) -> AsyncGenerator[ReferrerQuery, None]:
    """Yield the queries of all references to an object that a key supports.

    References without an ``on_delete`` or ``Children`` are absent if no key contains them.
    """
    for field, is_required in references_to(model):
        # The planner needs the state of migrations.
        await field.model._base_manager.all()._know()
        children = Referrers(model, field)
        for visibility in _VISIBILITIES if registry.has_soft_delete(field.model) else _VISIBILITIES[1:2]:
            query = ReferrerQuery(children, visibility)
            try:
                plan = query.queryset([pk])._plan()
            except NoAccessPattern:
                continue
            if is_required or plan.key is None or field.attname in plan.key.variables:
                yield query
                if visibility == "all":
                    break
