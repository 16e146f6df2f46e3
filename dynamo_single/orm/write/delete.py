"""Deleting for good: an object, and the children that go along, with Django's signals around it.

It must not know the trash: an object there is deleted like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db.models.signals import post_delete, pre_delete

from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition
from dynamo_single.orm.effects.write_errors import delete_error
from dynamo_single.orm.items import hydration, versions
from dynamo_single.orm.items.partial import changed_in_memory
from dynamo_single.orm.requests.actions import ITEM_EXISTS, ItemKey, key_of
from dynamo_single.orm.requests.block import Write
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.children import Children
from dynamo_single.orm.write import cascade, save
from dynamo_single.orm.write.cascade import Cascade, Step

#: How often the children are looked for, if other writers change them meanwhile.
ATTEMPTS = 3


def delete(obj: Any, extra: Condition, condition: Condition = EVERYTHING) -> tuple[int, dict[str, int]]:
    """Delete the item for good, after the children that go along; the counts are by model.

    Where the stored item does not meet ``extra``, nothing is deleted; where it does not meet ``condition``, that is
    ``ConditionNotMet``.
    """
    if obj._stored is None:
        raise ValueError(f"{obj._meta.object_name} object can't be deleted because it is not stored.")
    done: list[Any] = []
    try:
        if cascade.followers(type(obj), for_good=True):
            _with_children(obj, extra, condition, done)
        else:
            _announce([obj], obj, set())
            if _alone(obj, extra, condition):
                done.append(obj)
    finally:
        for each in done:
            each._state.adding = True
            post_delete.send(sender=each._meta.concrete_model, instance=each, using=None, origin=obj)
    obj._state.adding = True
    return cascade.counts(type(obj), done)


def along_with(obj: Any) -> list[Any]:
    """What is deleted for good along with an object: one Query for each kind of children, at the least."""
    return cascade.below(obj, children, for_good=True)


def children(of: Children[Any], pks: Sequence[Any], *, again: bool = False) -> list[Any]:
    """The children of some parents, live ones and those in the trash."""
    if of.is_by_table or not registry.has_soft_delete(of.model):
        return cascade.listed(of, pks, "all", again=again)
    return [*cascade.listed(of, pks, "live", again=again), *cascade.listed(of, pks, "deleted", again=again)]


def _alone(obj: Any, extra: Condition, condition: Condition) -> bool:
    def write(extra: Condition) -> bool:
        return bool(save.delete(obj, extra=extra, condition=condition))

    return write(extra) if extra == EVERYTHING else save.only_if(obj, extra, write)


def _with_children(obj: Any, extra: Condition, condition: Condition, done: list[Any]) -> None:
    announced: set[ItemKey] = set()
    for attempt in range(ATTEMPTS):
        below = cascade.below(obj, partial(children, again=attempt > 0), for_good=True)
        _announce([*below, obj], obj, announced)
        steps = [*(_step(each) for each in reversed(below)), _step(obj, extra, condition)]
        work = Cascade(steps, _guards(obj, extra, condition))
        try:
            work.send()
        except StaleObject:
            if not _may_go_on(obj, extra):
                return
            if attempt == ATTEMPTS - 1 or (work.failed is obj and extra == EVERYTHING):
                raise
        else:
            return
        finally:
            done += work.done


def _announce(objects: Sequence[Any], origin: Any, announced: set[ItemKey]) -> None:
    """Send ``pre_delete`` once for each object, however often its deletion is begun anew."""
    for obj in objects:
        key = key_of(obj._stored)
        if key not in announced:
            announced.add(key)
            pre_delete.send(sender=obj._meta.concrete_model, instance=obj, using=None, origin=origin)


def _step(obj: Any, extra: Condition = EVERYTHING, condition: Condition = EVERYTHING) -> Step:
    return Step(obj, lambda: bool(save.delete(obj, extra=extra, condition=condition)))


def _guards(obj: Any, extra: Condition, condition: Condition) -> list[Write]:
    """The conditions on the object, for the transactions that delete children before it."""
    required = join((*versions.conditions(type(obj), obj._stored), extra, condition))
    if required == EVERYTHING:
        return []
    name = f"{obj._meta.label} with pk {obj.pk!r}"
    explain = partial(delete_error, obj, dict(obj._stored), condition=condition)
    return [cascade.guard(name, key_of(obj._stored), join((ITEM_EXISTS, required)), explain)]


def _may_go_on(obj: Any, extra: Condition) -> bool:
    """Bring the object up to its item; whether it is there and meets the condition."""
    try:
        fresh = hydration.reload(obj)
    except type(obj).DoesNotExist:
        return False
    if not matches(extra, fresh._stored, registry.layout_of(type(obj))):
        return False
    if extra != EVERYTHING:
        hydration.follow(obj, fresh, changed_in_memory(obj))
    return True
