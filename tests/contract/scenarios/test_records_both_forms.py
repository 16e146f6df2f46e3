"""The same operations on records in a table of each form have equal results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import transactions
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.table import Table
from dynamo_single.testing import frozen_time, setup_table
from tests.contract.scenarios.conftest import product
from tests.contract.tables import as_stored, assert_consistent, everything, single_key_table
from tests.unit.declaring import forgotten

Model = Any
IDS = st.sampled_from(["product-a", "product-b", "product-c"])
VALUES = st.sampled_from(["x", "y", None])


@pytest.fixture(scope="module")
def both(engine: Table) -> Iterator[tuple[Model, Model]]:
    """Records of the same type and prefix in a table of each form."""
    with single_key_table() as alias, forgotten():
        yield product("default"), product(alias, "histories")


def create(model: Model, one: str, other: str, value: Any) -> Any:
    """Create a record that may exist, with a number that may be taken."""
    model.objects.create(id=one, data={"author": value or ""}, isbn=value)


def save(model: Model, one: str, other: str, value: Any) -> Any:
    """Change places of a document."""
    found = model.all_objects.get(pk=one)
    found.data |= {"author": value or "none", "by": other}
    found.isbn = value
    found.save()


def update(model: Model, one: str, other: str, value: Any) -> Any:
    """Change a place in the table, under a condition."""
    return model.objects.filter(pk=one, author=value or "x").update(data__by=other)


def delete(model: Model, one: str, other: str, value: Any) -> Any:
    """To the trash."""
    return model.objects.filter(pk__in=[one, other]).delete()[0]


def restore(model: Model, one: str, other: str, value: Any) -> Any:
    """And back."""
    model.deleted_objects.get(pk=one).restore()


def destroy(model: Model, one: str, other: str, value: Any) -> Any:
    """Delete permanently."""
    model.all_objects.get(pk=one).hard_delete()


def move(model: Model, one: str, other: str, value: Any) -> Any:
    """Give it another identifier."""
    model.objects.get(pk=one).move(id=other)


def block(model: Model, one: str, other: str, value: Any) -> Any:
    """Two writes, or none."""
    found = model.objects.get(pk=one)
    with transactions.atomic():
        found.data["both"] = True
        found.save()
        model.objects.create(id=other, data={}, isbn=value)


def read(model: Model, one: str, other: str, value: Any) -> Any:
    """Read by keys, lists and unique values."""
    return (
        sorted(model.objects.in_bulk([one, other])),
        sorted(model.objects.filter(author=value or "x").exclude(id=other).values_list("id", flat=True)),
        [each.data for each in model.objects.order_by("created_at", "id")],
        model.deleted_objects.count(),
        list(model.objects.filter(isbn=value).values_list("id", flat=True)) if value else [],
    )


OPERATIONS = st.sampled_from([create, create, save, update, delete, restore, destroy, move, block, read])


def outcome(operation: Callable[..., Any], model: Model, *given: Any) -> Any:
    """Return the result of an operation, or the class of its error."""
    try:
        return operation(model, *given)
    except (DynamoSingleError, model.DoesNotExist) as error:
        return type(error).__name__


@given(st.lists(st.tuples(OPERATIONS, IDS, IDS, VALUES), max_size=12))
def test_both_forms_do_the_same(both: tuple[Model, Model], steps: list[tuple[Any, str, str, Any]]) -> None:
    tables = [setup_table("default"), setup_table("products")]
    with frozen_time():
        for operation, *given_to in steps:
            one, other = (outcome(operation, model, *given_to) for model in both)
            assert one == other, operation.__name__
    for table in tables:
        assert_consistent(table.settings.alias)
    by_pair, by_id = (everything(table) for table in tables)
    assert by_pair == by_id
    assert all("pk" not in item and "sk" not in item for item in as_stored(tables[1]))
