"""A caller's conditions on a write: DynamoDB checks them, and the error contains the stored object."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db.models import F, Q

from dynamo_single import transactions
from dynamo_single.exceptions import (
    ConditionNotMet,
    InvalidValue,
    NotSupported,
    StaleObject,
    UniqueViolation,
    UnknownField,
)
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company
from tests.catalog.models import Member, Product
from tests.catalog.stocks import Stock
from tests.contract.tables import stored
from tests.unit.declaring import forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def stock() -> Stock:
    """Return a stored object that another process has changed since the read."""
    made = Stock.objects.create(code="s", qty=5, note="a", data={"a": {"b": [1]}})
    Stock.objects.filter(code="s").update(qty=3)
    return made


def rename(stock: Stock, condition: Any) -> None:
    """Save a change under a condition."""
    stock.note = "mine"
    stock.save(condition=condition)


def add(stock: Stock, condition: Any) -> None:
    """Save a sum under a condition."""
    stock.qty = F("qty") + 1
    stock.save(condition=condition)


def add_to_key(stock: Stock, condition: Any) -> None:
    """Save what a key depends on."""
    stock.rank = F("rank") + 1
    stock.save(condition=condition)


def one_field(stock: Stock, condition: Any) -> None:
    """Save one attribute."""
    stock.note = "mine"
    stock.save(update_fields=["note"], condition=condition)


WRITES: list[Callable[[Stock, Any], Any]] = [
    rename,
    add,
    add_to_key,
    one_field,
    lambda stock, condition: stock.delete(condition=condition),
    lambda stock, condition: stock.hard_delete(condition=condition),
]
IDS = ["save", "sum", "key", "update_fields", "delete", "hard_delete"]


@pytest.mark.parametrize("write", WRITES, ids=IDS)
@pytest.mark.parametrize(
    "condition",
    [Q(qty__gte=4), Q(qty=5) & Q(note="a"), ~Q(data__a__has_key="b"), Stock.qty > 3, Stock.note.startswith("b")],
    ids=str,
)
def test_a_condition_that_does_not_hold_is_told_with_the_stored_object(
    stock: Stock, table: Table, write: Callable[[Stock, Any], Any], condition: Any
) -> None:
    """One request fails, its error contains the stored object, and the table does not change."""
    before = stored(table)
    operation = "DeleteItem" if write in WRITES[-2:] else "UpdateItem"
    with assert_requests([operation]), pytest.raises(ConditionNotMet) as raised:
        write(stock, condition)
    assert not isinstance(raised.value, StaleObject)
    assert (raised.value.current.qty, raised.value.current.pk) == (3, "s")
    assert "catalog.Stock with pk 's' does not meet the condition of the write, " in str(raised.value)
    assert stored(table) == before


@pytest.mark.parametrize("write", WRITES, ids=IDS)
@pytest.mark.parametrize(
    "condition",
    [Q(qty=3), Q(qty__in=[1, 3]) | Q(note="x"), (Stock.qty < 4) & Stock.data.exists(), None],
    ids=str,
)
def test_a_condition_that_holds_lets_the_write_through(
    stock: Stock, table: Table, write: Callable[[Stock, Any], Any], condition: Any
) -> None:
    """One request succeeds, whether or not the object has changed since the read."""
    operation = "DeleteItem" if write in WRITES[-2:] else "UpdateItem"
    before = stored(table)
    with assert_requests([operation]):
        write(stock, condition)
    assert stored(table) != before


def test_a_condition_without_a_change_is_checked(stock: Stock, table: Table) -> None:
    """A save without changes still checks the condition."""
    before = stored(table)
    with assert_requests(["TransactWriteItems"]):
        stock.save(condition=Q(qty=3))
    with assert_requests(["TransactWriteItems"]), pytest.raises(ConditionNotMet) as raised:
        stock.save(condition=Q(qty=5))
    assert raised.value.current.qty == 3
    with pytest.raises(ConditionNotMet):
        stock.save(update_fields=[], condition=Q(qty=5))
    assert stored(table) == before


def test_what_is_gone_is_not_as_it_was_read(stock: Stock) -> None:
    """A save of a deleted object raises an error; a deletion does not send a request."""
    Stock.objects.get(code="s").delete()
    with pytest.raises(StaleObject, match="was deleted since it was read"):
        rename(stock, Q(qty=3))
    assert stock.delete(condition=Q(qty=3)) == (0, {"catalog.Stock": 0})


def test_a_new_object_takes_no_condition() -> None:
    """There is nothing stored that it could be about."""
    with assert_requests(0), pytest.raises(NotSupported, match="is about what is stored"):
        Stock(code="n").save(condition=Q(qty=1))
    with assert_requests(0), pytest.raises(NotSupported, match="is about what is stored"):
        Stock(code="n").save(force_insert=True, condition=Stock.qty > 1)


@pytest.mark.parametrize("condition", [{"qty": 1}, True, "qty = 1"])
def test_what_is_no_condition_is_refused(stock: Stock, condition: Any) -> None:
    """The error describes a valid condition, and no request is sent."""
    for write in WRITES:
        with assert_requests(0), pytest.raises(InvalidValue, match=r"is a Q, as in Q\(qty__gte=1\)"):
            write(stock, condition)


def test_our_own_conditions_are_told_apart() -> None:
    """If the caller's condition holds but the keys are outdated, the error is ``StaleObject``."""
    Stock.objects.create(code="s", rank=1, serial=1)
    mine, theirs = Stock.objects.get(code="s"), Stock.objects.get(code="s")
    theirs.serial = 2
    theirs.save()
    mine.serial = 3
    with pytest.raises(StaleObject, match="serial"):
        mine.save(condition=Q(rank=1))
    with pytest.raises(ConditionNotMet):
        mine.save(condition=Q(rank=2))
    Stock.objects.create(code="t", serial=9)
    theirs.serial = 9
    with pytest.raises(UniqueViolation):
        theirs.save(condition=Q(rank=1))


def test_soft_delete_under_a_condition(table: Table) -> None:
    """Only objects that meet the condition go to the trash, even if the transaction also releases claims."""
    book = Product.objects.create(data={"price": 1})
    with assert_requests(["UpdateItem"]), pytest.raises(ConditionNotMet) as raised:
        book.delete(condition=Q(data__price=2))
    assert raised.value.current.data == {"price": 1}
    assert book.delete(condition=Q(data__price=1))[0] == 1
    company = Company.objects.create(company_id="c", name="Acme", stock="ACM")
    with pytest.raises(ConditionNotMet):
        company.delete(condition=Q(stock="X"))
    with pytest.raises(ConditionNotMet):
        company.hard_delete(condition=Q(stock="X"))
    assert company.delete(condition=Company.stock == "ACM")[0] == 1
    member = Member.objects.create(member_id="m", email="a@example.org", badge=1)
    before = stored(table)
    for delete in (member.delete, member.hard_delete):
        with assert_requests(["TransactWriteItems"]), pytest.raises(ConditionNotMet) as raised:
            delete(condition=Q(badge=2))
        assert raised.value.current.badge == 1
    assert stored(table) == before


def test_a_condition_in_a_block_is_held_to_at_its_end(stock: Stock, table: Table) -> None:
    """A failed condition raises the write's error, and the block is not written."""
    before = stored(table)
    with pytest.raises(ConditionNotMet) as raised, transactions.atomic():
        Stock.objects.create(code="t")
        rename(stock, Q(qty=5))
    assert raised.value.current.qty == 3
    assert stored(table) == before
    with pytest.raises(ConditionNotMet) as raised, transactions.atomic():
        Stock.objects.create(code="t")
        stock.delete(condition=Q(qty=5))
    assert raised.value.current.qty == 3
    assert stored(table) == before
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        Stock.objects.create(code="t")
        stock.delete(condition=Q(qty=3))


def test_asynchronous_twins_take_conditions(stock: Stock) -> None:
    """``asave()``, ``adelete()`` and ``ahard_delete()`` hand them on."""

    async def work() -> list[str]:
        stock.note = "b"
        told = []
        for write in (stock.asave, stock.adelete, stock.ahard_delete):
            try:
                await write(condition=Q(qty=5))
            except ConditionNotMet as error:
                told.append(type(error.current).__name__)
        await stock.asave(condition=Q(qty=3))
        return told

    assert asyncio.run(work()) == ["Stock", "Stock", "Stock"]
    assert Stock.objects.get(code="s").note == "b"


def test_an_overridden_save_hands_it_on() -> None:
    """A ``save(**options)`` of a project's own passes the condition to the model's."""

    with forgotten():

        class Own(Stock):
            class Meta:
                proxy = True
                app_label = "catalog"

            def save(self, **options: Any) -> None:
                self.note = "own"
                super().save(**options)

        made = Own.objects.create(code="o", qty=1)
        made.qty = 2
        with pytest.raises(ConditionNotMet):
            made.save(condition=Q(note="other"))


@pytest.mark.parametrize("save", [{"force_update": True}, {}])
def test_force_update_with_a_condition(stock: Stock, save: Mapping[str, Any]) -> None:
    """The condition also applies if all keys are written again."""
    with pytest.raises(ConditionNotMet):
        stock.save(condition=Q(qty=4), **save)


def test_models_without_the_attribute_say_so(stock: Stock) -> None:
    """A wrong name raises an error before any request is sent."""
    with assert_requests(0), pytest.raises(UnknownField, match="nothing"):
        rename(stock, Q(nothing=1))
