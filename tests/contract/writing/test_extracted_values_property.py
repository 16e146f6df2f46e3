"""Whatever two processes do to one object's documents, the extracted values match, or a write fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.models import REMOVE
from dynamo_single.table import Table
from tests.catalog.records import Treatise
from tests.contract.racing import before_write
from tests.contract.tables import assert_consistent, everything
from tests.deep import examples

pytestmark = pytest.mark.usefixtures("table")

LASTNAMES = st.sampled_from(["A", "B", None])
AUTHORS = st.one_of(
    st.fixed_dictionaries({"lastname": LASTNAMES}), st.just({}), st.none(), st.sampled_from(["text", 5, ["a"]])
)
DOCUMENTS = st.fixed_dictionaries(
    {"author": AUTHORS, "price": st.sampled_from([1, 2, None]), "title": st.integers(0, 1)}
)
NOTHING = object()
CHANGES = st.one_of(
    st.tuples(st.just("data"), DOCUMENTS),
    st.tuples(st.just("data__author"), AUTHORS),
    st.tuples(st.just("data__author__lastname"), LASTNAMES),
    st.tuples(st.just("data__price"), st.sampled_from([1, 2, NOTHING])),
    st.tuples(st.just("data__title"), st.integers(0, 1)),
)
WAYS = st.sampled_from(["save", "named", "update", "update", "update", "bulk_update", "delete", "restore", "forced"])
#: The writer, the method and the change, and whether the other process writes just before its first write.
STEPS = st.lists(st.tuples(st.integers(0, 1), WAYS, CHANGES, st.none() | st.tuples(WAYS, CHANGES)), max_size=6)


def put(data: dict[str, Any], path: list[str], value: Any) -> None:
    """Set or remove an element of a document; ignore an element outside a map."""
    for step in path[:-1]:
        inside = data.get(step)
        if not isinstance(inside, dict):
            return
        data = inside
    if value is NOTHING:
        data.pop(path[-1], None)
    else:
        data[path[-1]] = value


def in_memory(obj: Any, name: str, value: Any) -> Any:
    """The object with a change of its document."""
    _, *path = name.split("__")
    if path:
        put(obj.data, path, value)
    else:
        obj.data = value
    return obj


WRITERS: dict[str, Callable[[Any, str, Any], Any]] = {
    "save": lambda obj, name, value: in_memory(obj, name, value).save(),
    "named": lambda obj, name, value: in_memory(obj, name, value).save(update_fields=["data"]),
    "forced": lambda obj, name, value: in_memory(obj, name, value).save(force_update=True),
    "bulk_update": lambda obj, name, value: Treatise.objects.bulk_update([in_memory(obj, name, value)], ["data"]),
    "update": lambda obj, name, value: Treatise.all_objects.filter(pk=obj.pk).update(
        **{name: REMOVE if value is NOTHING else value}
    ),
    "delete": lambda obj, name, value: obj.delete(),
    "restore": lambda obj, name, value: obj.restore(),
}


def act(obj: Any, way: str, change: tuple[str, Any]) -> None:
    """Write, or fail."""
    with suppress(DynamoSingleError, ValueError):
        WRITERS[way](obj, *change)


@settings(max_examples=examples(8, 60))
@given(DOCUMENTS, STEPS)
def test_two_writers_leave_what_is_extracted_as_the_document_has_it(
    table: Table,
    data: dict[str, Any],
    steps: list[tuple[int, str, tuple[str, Any], tuple[str, tuple[str, Any]] | None]],
) -> None:
    for _, item in everything(table).items():
        Treatise.from_item(item).hard_delete()
    with suppress(DynamoSingleError):
        Treatise.objects.create(id="treatise-1", data=data)
    found = Treatise.all_objects.filter(pk="treatise-1").first()
    writers = [] if found is None else [Treatise.all_objects.get(pk="treatise-1") for _ in range(2)]
    for number, way, change, between in steps if writers else ():
        if between is None:
            act(writers[number], way, change)
        else:
            # Perhaps there is nothing to write, so that the other one does not come to it.
            with suppress(AssertionError), before_write(1, partial(act, writers[1 - number], *between)):
                act(writers[number], way, change)
        assert_consistent()
