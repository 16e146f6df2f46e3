"""Many-to-many relations whose keys are a set attribute of the objects on one side, such as a user's groups.

The object with the set decides what is related. ``change_kept()`` changes its set, and ``HoldersManager`` is the base
of the manager on the other side, which returns the objects whose sets contain a key. This module must not know how the
relation is declared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from dynamo_single.exceptions import DynamoSingleError, NotSupported, StaleObject
from dynamo_single.orm.effects.write import is_gone
from dynamo_single.orm.query.many_to_many import RelatedManager
from dynamo_single.orm.requests.atomic_block import Block, current
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import Defaults, DynamoModel
from dynamo_single.orm.write import batch_transactions
from dynamo_single.table.flow import call_method, pause

#: How often a change of an object's set is retried after a concurrent change.
ATTEMPTS = 8
#: Converts the current keys in a set to the new ones.
Change = Callable[[set[str]], set[str]]
#: Gets an object and its keys before and after a change, and may raise an error.
Check = Callable[[Any, set[str], set[str]], None]


async def change_kept(obj: Any, name: str, change: Change, check: Check) -> None:
    """Change the set ``name`` of an object: one write, after a GetItem if the object is outdated or already matches.

    ``check`` may refuse the change.
    """
    is_fresh = False
    for attempt in range(ATTEMPTS):
        held = set(getattr(obj, name) or ())
        wanted = change(held)
        if wanted == held and is_fresh:
            return
        if wanted != held:
            check(obj, held, wanted)
            try:
                await _save(obj, name, held, wanted)
            except StaleObject as error:
                if is_gone(error) or attempt == ATTEMPTS - 1:
                    raise
                await pause(random.uniform(0, 0.02 * attempt))  # noqa: S311 - jitter is no secret
            else:
                return
        await call_method(obj, "refresh_from_db", fields=[name])
        is_fresh = True


async def _save(obj: Any, name: str, held: set[str], wanted: set[str]) -> None:
    setattr(obj, name, wanted)
    try:
        await call_method(obj, "save", update_fields=[name])
    except DynamoSingleError:
        setattr(obj, name, held)
        raise


class KeptManager(RelatedManager):
    """The base of the managers on both sides. The edges have no additional attributes."""

    #: The attribute with the set.
    kept_in: ClassVar[str]

    async def _check(self, through_defaults: Defaults = None, *, adds: bool = False) -> None:
        if through_defaults:
            raise NotSupported(f"through_defaults: {self.end.name} are keys, which have no attributes of their own.")
        self._check_stored(self.instance)

    def _check_stored(self, obj: Any) -> None:
        if obj._stored is None:
            raise ValueError(f"{shown(obj)} is not stored: save it before {self.end.name} is changed.")

    async def _find(self, keys: Sequence[Any], *, adds: bool) -> dict[Any, Any]:
        """Read the objects, unless a fixture names them: one request for each hundred."""
        if self._raw:
            return dict.fromkeys(keys)
        found: dict[Any, Any] = await call_method(self.model._default_manager, "in_bulk", keys)
        return found

    def _check_set(self, obj: Any, held: set[str], wanted: set[str]) -> None:
        """Raise an error if an object's set must not become another one."""


class KeysManager(KeptManager):
    """The base of the manager on the side with the set: each change of the relation writes the object."""

    async def _set(self, wanted: Mapping[Any, Any], clear: bool, through_defaults: Defaults) -> None:
        await self._change(lambda held: {*wanted})

    async def _add(self, objs: Mapping[Any, Any], through_defaults: Defaults = None) -> None:
        await self._change(lambda held: held | objs.keys())

    async def _remove(self, objs: Mapping[Any, Any]) -> None:
        await self._change(lambda held: held - objs.keys())

    async def _clear(self) -> None:
        await self._change(lambda held: set())

    async def _change(self, change: Change) -> None:
        self._prefetched.pop(self.end.name, None)
        await change_kept(self.instance, self.kept_in, change, self._check_set)


class HoldersManager(KeptManager):
    """The base of the manager on the other side: each change of the relation writes one object after the other."""

    @property
    def key(self) -> str:
        """The key of the object that has the manager, as the sets contain it."""
        return str(self.instance.pk)

    async def _set(self, wanted: Mapping[Any, Any], clear: bool, through_defaults: Defaults) -> None:
        held = await self._current()
        await self._remove({pk: obj for pk, obj in held.items() if pk not in wanted})
        await self._add({pk: obj for pk, obj in wanted.items() if pk not in held})

    async def _add(self, objs: Mapping[Any, Any], through_defaults: Defaults = None) -> None:
        await self._change("add", objs, lambda held: held | {self.key})

    async def _remove(self, objs: Mapping[Any, Any]) -> None:
        await self._change("remove", objs, lambda held: held - {self.key})

    async def _clear(self) -> None:
        await self._remove(await self._current())

    async def _current(self) -> dict[Any, Any]:
        behind: Any = self
        return {obj.pk: obj for obj in await behind.get_queryset()._read()}

    async def _change(self, verb: str, objs: Mapping[Any, Any], change: Change) -> None:
        async def write(obj: DynamoModel, pending: Block | None) -> dict[str, int]:
            await change_kept(obj, self.kept_in, change, self._check_set)
            return {obj._meta.label: 1}

        # Sequentially: the transactions may write in one partition of an index, and would conflict.
        job = batch_transactions.BulkWrite(verb, self.model, current(), len(objs), is_parallel=False)
        await job.write_each(objs.values(), write)
