"""What texts of histories call beside the ways to write and to read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.filled import growth
from dynamo_single.orm.schema import registry
from dynamo_single.table import get_table
from tests.contract.pairs.lag import lagging
from tests.contract.pairs.writers import loaded

__all__ = ["StaleObject", "divide", "hard_delete", "lagging", "loaded", "pks", "restore", "save_twice"]


def pks(objects: Iterable[Any]) -> list[str]:
    """The identities, in order."""
    return sorted(obj.pk for obj in objects)


def restore(model: Any, pk: str) -> None:
    """Take an object out of the trash."""
    model.all_objects.consistent().get(pk=pk).restore()


def hard_delete(model: Any, pk: str) -> None:
    """Delete an object for good, live or not."""
    model.all_objects.consistent().get(pk=pk).hard_delete()


def save_twice(model: Any, pk: str, *, error: type[Exception], **values: Any) -> None:
    """Save an object that was read before and another one that was read before that: the second one fails."""
    first, second = loaded(model, pk), loaded(model, pk)
    for obj in (first, second):
        for name, value in values.items():
            setattr(obj, name, value)
    first.save()
    with pytest.raises(error):
        second.save()


def divide(model: Any, number: int) -> None:
    """Divide a model's keys into so many shards, from the beginning."""
    growth.begin_with(get_table(), registry.layout_of(model), number)
