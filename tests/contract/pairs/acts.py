"""Functions for histories in addition to the ways to write and to read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage

from dynamo_single import clock
from dynamo_single.authorship import acting_as
from dynamo_single.contrib.doctor import repair, verify
from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.rollout import shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.table import get_table
from tests.contract.pairs.lag import Time, lagging
from tests.contract.pairs.writers import loaded

__all__ = [
    "STORAGE",
    "StaleObject",
    "acting_as",
    "divide",
    "every",
    "grow",
    "hard_delete",
    "lagging",
    "left",
    "live_below",
    "loaded",
    "marked",
    "outdated",
    "pks",
    "purge",
    "rebuild",
    "restore",
    "save_twice",
    "scanned",
    "send_to_trash",
    "upload",
]


def pks(objects: Iterable[Any]) -> list[str]:
    """The identities, in order."""
    return sorted(obj.pk for obj in objects)


def restore(model: Any, pk: str) -> None:
    """Take an object out of the trash."""
    model.all_objects.consistent().get(pk=pk).restore()


def hard_delete(model: Any, pk: str) -> None:
    """Permanently delete an object, live or not."""
    model.all_objects.consistent().get(pk=pk).hard_delete()


def send_to_trash(model: Any, pk: str) -> None:
    """Softly delete an object; an object in the trash includes its live children."""
    model.all_objects.consistent().get(pk=pk).delete()


def save_twice(model: Any, pk: str, *, error: type[Exception], **values: Any) -> None:
    """Save an object and an older copy of it: the second save fails."""
    first, second = loaded(model, pk), loaded(model, pk)
    for obj in (first, second):
        for name, value in values.items():
            setattr(obj, name, value)
    first.save()
    with pytest.raises(error):
        second.save()


def divide(model: Any, number: int) -> None:
    """Divide a model's keys into so many shards, from the beginning."""
    shard_record.record_first(get_table(), registry.layout_of(model), number)


def grow(model: Any, number: int, time: Time) -> None:
    """Divide a model's keys into more shards as soon as that can be, and wait until then."""
    since = shard_record.earliest_start()
    shard_record.grow(get_table(), registry.layout_of(model), number, since)
    time.move((since - clock.now()).total_seconds())


#: Where files are.
STORAGE = InMemoryStorage()


def upload(model: Any, pk: str, text: str) -> None:
    """Give an object a file, and read it again."""
    obj = loaded(model, pk)
    obj.paper = ContentFile(text.encode(), name=f"{text}.txt")
    obj.save()
    assert loaded(model, pk).paper.read() == text.encode()


def every(model: Any) -> Any:
    """Return the manager of live and deleted objects."""
    return getattr(model, "all_objects", model.objects)


def left(model: Any, names: list[str], owner: str) -> list[str]:
    """The things that refer to an owner still."""
    return pks(obj for obj in scanned(every(model)) if owner in {getattr(obj, name) for name in names})


def live_below(model: Any, names: list[str], owner: str) -> list[str]:
    """The live things that refer to an owner."""
    return pks(obj for obj in scanned(model.objects) if owner in {getattr(obj, name) for name in names})


def marked(model: Any, owner: str) -> list[str]:
    """The things that went to the trash with an owner."""
    return pks(obj for obj in scanned(every(model)) if obj.deleted_with == f"Owner#{owner}")


def outdated(model: Any, owner: str) -> list[str]:
    """Return the things with an outdated copy of an owner's name."""
    found = [obj for obj in scanned(every(model)) if obj.owner_id == owner]
    return pks(obj for obj in found if obj.owner_name != obj.owner.name)


def scanned(manager: Any) -> Iterable[Any]:
    """Return all stored items with a consistent read."""
    return manager.allow_scan().consistent().using_index("primary")


def purge(model: Any, missed: list[str]) -> None:
    """Delete permanently what a deletion has left."""
    for pk in missed:
        obj = every(model).consistent().get(pk=pk)
        delete = getattr(obj, "hard_delete", obj.delete)
        delete()


def rebuild() -> None:
    """Do what `dynamo_verify --repair` does."""
    for finding in verify():
        repair(finding)
