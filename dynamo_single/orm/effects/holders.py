"""Who holds the copies of a source: the objects that refer to it, found by a key, whatever holds them back.

What becomes of their copies is in ``spreading``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any

from msgspec import Struct

from dynamo_single.exceptions import NoAccessPattern
from dynamo_single.orm.effects.copies import value_in
from dynamo_single.orm.items.serialization import is_same
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CopiedAttribute
from dynamo_single.orm.schema.identities import some_value_of
from dynamo_single.orm.schema.kinds import DynamoModel, ModelField
from dynamo_single.table import names
from dynamo_single.table.limits import MAX_BATCH_KEYS


class Group(Struct, frozen=True):
    """The copies of one source that the objects of one model hold by one reference, and what they are to be."""

    holder: Any
    field: Any
    pk: Any
    values: Mapping[str, Any]

    @property
    def bound(self) -> CopiedAttribute | None:
        """The copy with the smallest ``max_holders``, if any of them has one."""
        copies = [copy for copy in registry.copied_of(self.holder) if copy.name in self.values and copy.max_holders]
        return min(copies, key=lambda copy: copy.max_holders or 0, default=None)

    async def stale(self, *, deleted: bool = True, reread: bool = False) -> AsyncGenerator[Any, None]:
        """The objects whose copies are otherwise: a Query by the key that the relation has; ``deleted`` ones too.

        From the table itself, strongly consistent, if that has a key for them. An index may show an object as it was
        some seconds ago; ``reread`` adds a consistent BatchGetItem for each hundred that it shows as stale.
        """
        # Planning asks for it.
        await self.holder._base_manager.all()._know()
        for queryset in found_by_keys(self.holder, self.field, self.pk, deleted=deleted):
            again = reread and not queryset._asked.consistent
            async with aclosing(queryset._pages()) as pages:
                async for page in pages:
                    found = [obj for obj in page if self._is_stale(obj)]
                    for obj in await self._reread(found) if again and found else found:
                        yield obj

    def _is_stale(self, obj: Any) -> bool:
        attributes, held = registry.attributes_of(self.holder), obj.__dict__
        return not all(is_same(attributes[name], value, held[name]) for name, value in self.values.items())

    async def _reread(self, shown: list[Any]) -> list[Any]:
        """Those of the objects that are stale in the table too, as it has them."""
        pks = [obj.pk for obj in shown]
        every = self.holder._base_manager.order_by().consistent().filter(**{self.field.attname: self.pk})
        found = []
        for start in range(0, len(pks), MAX_BATCH_KEYS):
            async with aclosing(every.filter(pk__in=pks[start : start + MAX_BATCH_KEYS])._pages()) as pages:
                found += [obj async for page in pages for obj in page if self._is_stale(obj)]
        return found


def found_by_keys(holder: Any, field: ModelField, pk: object, *, deleted: bool) -> list[Any]:
    """The querysets that find the objects which refer to one; raises ``NoAccessPattern`` if no key does."""
    # Without Meta.ordering, which no key may have.
    every = holder._base_manager.order_by().filter(**{field.attname: pk})
    querysets = [every]
    if registry.layout_of(holder).soft_delete and not _is_one_reading(every):
        # Deleted objects have left the live keys.
        querysets = [every.with_visibility("live"), every.with_visibility("deleted")][: 1 + deleted]
    return [_as_consistent_as_possible(queryset) for queryset in querysets]


def _is_one_reading(queryset: Any) -> bool:
    try:
        return queryset._plan(ordered=False).kind in ("query", "get", "batch_get")
    except NoAccessPattern:
        return False


def _as_consistent_as_possible(queryset: Any) -> Any:
    plan = queryset._plan(ordered=False)
    from_table = plan.kind == "query" and plan.key is not None and plan.key.index is None
    return queryset.consistent() if from_table or plan.kind in ("get", "batch_get") else queryset


def problem(copy: CopiedAttribute) -> str | None:
    """What is wrong with how a copy's holders are found, if anything is."""
    value = some_value_of(copy.reference_field.attribute)
    try:
        found_by_keys(copy.field.model, copy.reference_field, value, deleted=True)
    except NoAccessPattern as error:
        return str(error)
    return None


def groups(model: type[DynamoModel], pk: object, item: Item, copies: Iterable[CopiedAttribute]) -> list[Group]:
    """Some copies of an object's attributes, as its item says they are to be."""
    values: dict[tuple[Any, Any], dict[str, Any]] = {}
    for copy in copies:
        at = values.setdefault((copy.field.model, copy.reference_field), {})
        at[copy.name] = value_in(copy.source, item)
    return [Group(holder, field, pk, found) for (holder, field), found in values.items()]


def marks(copies: Iterable[CopiedAttribute]) -> list[str]:
    """Copies as a source's mark names them."""
    return sorted(f"{copy.field.model._options.item_type}.{copy.attr_name}" for copy in copies)


def marked(model: type[DynamoModel], item: Item) -> list[CopiedAttribute]:
    """The copies that an item's mark says have not followed yet."""
    due = item.get(names.COPIES_DUE, {}).get("SS", ())
    return [copy for copy in registry.copied_from(model) if set(marks([copy])) & set(due)]
