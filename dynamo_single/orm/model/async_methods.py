"""An object's methods as coroutines, and their asynchronous variants, which await them in the event loop.

If a project's class overrides such a method, the asynchronous variant runs it in a thread, as Django does. A
synchronous signal receiver alone runs in a thread; the rest is awaited.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db.models.base import ModelBase
from django.db.models.signals import post_save, pre_save
from django.utils import deprecation

from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition
from dynamo_single.orm.items import async_safety, refresh
from dynamo_single.orm.items.async_safety import notify
from dynamo_single.orm.requests.atomic_block import Block, current
from dynamo_single.orm.schema.types import DynamoModel, are_plain
from dynamo_single.table.flow import call_sync

if TYPE_CHECKING:
    from dynamo_single.orm.effects import base as effects
    from dynamo_single.orm.effects.base import CallerConditions
    from dynamo_single.orm.write import create, on_delete, save
    from dynamo_single.orm.write import delete as purging
else:
    effects = LazyModule("dynamo_single.orm.effects.base")
    create = LazyModule("dynamo_single.orm.write.create")
    on_delete = LazyModule("dynamo_single.orm.write.on_delete")
    purging = LazyModule("dynamo_single.orm.write.delete")
    save = LazyModule("dynamo_single.orm.write.save")

_TO_SAVE = ("save", "save_base", "_save_table", "get_deferred_fields")
_TO_DELETE = ("delete", "hard_delete")
_TO_READ = ("refresh_from_db", "get_deferred_fields")


class AsyncMethods:
    """The coroutines of an object's methods, and the asynchronous variants."""

    async def _saved(
        self: Any,
        raw: bool = False,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
        condition: Condition = EVERYTHING,
    ) -> None:
        # Django's sender is the class of the object, also of a proxy.
        cls, sender = self._meta.concrete_model, self.__class__
        names = None if update_fields is None else frozenset(update_fields)
        await notify(pre_save, sender, instance=self, raw=raw, using=using, update_fields=names)
        asked = (raw, cls, bool(force_insert), force_update, using, names, condition)
        if are_plain(self.__class__, ("_save_table",)):
            updated = await self._written(*asked)
        else:
            updated = await call_sync(functools.partial(self._save_table, *asked))
        self._state.adding = False
        await notify(post_save, sender, instance=self, created=not updated, update_fields=names, raw=raw, using=using)

    async def _written(
        self: Any,
        raw: bool,
        cls: object,
        force_insert: bool,
        force_update: bool,
        using: str | None,
        update_fields: Iterable[str] | None,
        condition: Condition,
    ) -> bool:
        """Write the item; ``False`` if there was none before."""
        if raw:
            return await create.replace(self, current())
        if force_insert or (self._state.adding and not force_update and update_fields is None):
            await create.create(self, current())
            return False
        wanted = save.DEFAULT_SAVE
        if update_fields is not None or force_update or condition != EVERYTHING:
            names = None if update_fields is None else frozenset(update_fields)
            is_free = condition == EVERYTHING
            terms = effects.NO_CONDITIONS if is_free else effects.CallerConditions(demanded=condition)
            wanted = save.SaveOptions(names, terms=terms, force=force_update and names is None)
        await save.save(self, wanted, current())
        return True

    async def _hard_deleted(
        self: Any, terms: CallerConditions, pending: Block | None, origin: object = None
    ) -> tuple[int, dict[str, int]]:
        """Delete permanently; the signals name ``origin``, which is the object itself unless it is given."""
        return await purging.delete(self, terms, pending, origin)

    async def _deleted(
        self: Any, terms: CallerConditions, pending: Block | None, origin: object = None
    ) -> tuple[int, dict[str, int]]:
        """Delete as ``delete()`` does."""
        return await self._hard_deleted(terms, pending, origin)  # type: ignore[no-any-return]

    async def asave(self: Any, *args: object, **options: object) -> None:
        """``save()``, awaited."""
        if not _is_native(self, _TO_SAVE):
            await sync_to_async(self.save)(*args, **options)
            return
        given = self._to_save(*args, **options)
        if given is not None:
            await self._saved(**given)

    async def _adelete(self: Any, **options: Any) -> tuple[int, dict[str, int]]:
        if not _deletes_natively(self):
            deleted: tuple[int, dict[str, int]] = await sync_to_async(self.delete)(**options)
            return deleted
        return await self._deleted(self._demanding(_condition_of(**options)), current())  # type: ignore[no-any-return]

    async def ahard_delete(self: Any, *, condition: object = None) -> tuple[int, dict[str, int]]:
        """``hard_delete()``, awaited."""
        if not _deletes_natively(self):
            deleted: tuple[int, dict[str, int]] = await sync_to_async(self.hard_delete)(condition=condition)
            return deleted
        return await self._hard_deleted(self._demanding(condition), current())  # type: ignore[no-any-return]

    async def arefresh_from_db(
        self: Any, using: str | None = None, fields: Iterable[str] | None = None, from_queryset: object = None
    ) -> None:
        """``refresh_from_db()``, awaited."""
        if not _is_native(self, _TO_READ):
            await sync_to_async(self.refresh_from_db)(using, fields, from_queryset)
            return
        await refresh.refresh(self, fields, from_queryset)


def _is_native(obj: DynamoModel, names: tuple[str, ...]) -> bool:
    return are_plain(obj.__class__, names) and async_safety.creates_plain_objects(type(obj))


def _deletes_natively(obj: DynamoModel) -> bool:
    return are_plain(obj.__class__, _TO_DELETE) and all(
        map(async_safety.creates_plain_objects, on_delete.involved_models(type(obj)))
    )


def _condition_of(*, using: str | None = None, keep_parents: bool = False, condition: object = None) -> object:
    """The condition among the options of ``delete()``."""
    return condition


# Templates call none of them.
AsyncMethods.asave.alters_data = True  # type: ignore[attr-defined]
AsyncMethods.ahard_delete.alters_data = True  # type: ignore[attr-defined]


# The positional arguments of ``save(False, False)``, which Django 5.2 still accepts with a warning, and 6.1 does not;
# and the values that ``force_insert`` may have.

#: In this order, and with these defaults.
_SAVE: dict[str, Any] = {"force_insert": False, "force_update": False, "using": None, "update_fields": None}
#: Django's own warning; a release that has dropped it has dropped positional arguments.
_WARNING: type[Warning] | None = getattr(deprecation, "RemovedInDjango60Warning", None)


def save_options(args: tuple[object, ...], by_name: tuple[object, ...]) -> tuple[Any, ...]:
    """Return the four options of ``save()`` from the positional and keyword arguments."""
    most = len(_SAVE) if _WARNING is not None else 0
    if _WARNING is None or len(args) > most:
        takes = f"from 1 to {most + 1} positional arguments" if most else "1 positional argument"
        raise TypeError(f"Model.save() takes {takes} but {len(args) + 1} were given")
    if not isinstance(args[0], bool | int | tuple | type):
        # PynamoDB's first argument is a condition. As a positional argument it would be true here, and force a
        # creation.
        raise TypeError("Model.save() takes force_insert in the first place, and a condition by name: condition=...")
    warnings.warn("Passing positional arguments to save() is deprecated", _WARNING, stacklevel=4)
    for (name, default), _, named in zip(_SAVE.items(), args, by_name, strict=False):
        if named is not default:
            raise TypeError(f"Model.save() got multiple values for argument '{name}'")
    return (*args, *by_name[len(args) :])


def check_force_insert(model: type, given: object) -> None:
    """Refuse what Django refuses as ``force_insert``: it is a boolean, or a tuple of the model and its bases."""
    if isinstance(given, bool):
        return
    if not isinstance(given, tuple):
        raise TypeError("force_insert must be a bool or tuple.")
    for member in given:
        if not isinstance(member, ModelBase):
            raise TypeError(f"Invalid force_insert member. {member!r} must be a model subclass.")
        if not issubclass(model, member):
            raise TypeError(f"Invalid force_insert member. {member!r} must be a base of {model.__qualname__}.")
