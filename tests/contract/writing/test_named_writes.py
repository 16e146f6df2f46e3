"""Named attributes are written even if unchanged, since another process may have changed them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.requests.actions import Update, key_of
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.table.table import get_table
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.boards import Board, Note
from tests.catalog.safes import Safe
from tests.catalog.stocks import Ledger, Stock
from tests.contract.tables import assert_consistent

pytestmark = pytest.mark.usefixtures("table")

NAMED: dict[str, Callable[[Any], Any]] = {
    "update_fields": lambda obj: obj.save(update_fields=["qty"]),
    "force_update": lambda obj: obj.save(force_update=True),
    "bulk_update": lambda obj: Stock.objects.bulk_update([obj], ["qty"]),
}


def changed_elsewhere(**values: Any) -> Stock:
    """Return an object that another process has changed since the read."""
    Stock.objects.create(code="s", qty=1, note="n", rank=1, tags=["a"], labels={"a"}, data={"a": 1})
    stock = Stock.objects.get(pk="s")
    Stock.objects.filter(pk="s").update(**values)
    return stock


@pytest.mark.parametrize("write", NAMED.values(), ids=NAMED)
def test_what_is_named_is_written(write: Callable[[Any], Any]) -> None:
    """With one request, over what another writer has set."""
    stock = changed_elsewhere(qty=2)
    stock.qty = 1
    with assert_requests(["UpdateItem"]):
        write(stock)
    assert Stock.objects.get(pk="s").qty == 1


def test_a_plain_save_writes_what_changed() -> None:
    """A plain save keeps another process's value of an unchanged attribute."""
    stock = changed_elsewhere(qty=2)
    stock.qty = 1
    with assert_requests(0):
        stock.save()
    assert Stock.objects.get(pk="s").qty == 2


def test_a_value_that_is_named_empty_is_removed() -> None:
    """Nothing is a value like any other."""
    stock = changed_elsewhere(spare=5)
    stock.save(update_fields=["spare"])
    assert Stock.objects.get(pk="s").spare is None


def test_what_is_not_named_is_left_alone() -> None:
    """Another writer's value of another attribute stays."""
    stock = changed_elsewhere(qty=2, note="theirs")
    stock.save(update_fields=["qty"])
    found = Stock.objects.get(pk="s")
    assert (found.qty, found.note) == (1, "theirs")


def test_a_forced_update_of_an_object_that_was_read_in_part_leaves_the_rest_alone() -> None:
    """Attributes that were not loaded have no value to write."""
    Stock.objects.create(code="s", qty=1, note="n")
    stock = Stock.objects.only("qty").get(pk="s")
    Stock.objects.filter(pk="s").update(qty=2, note="theirs")
    stock.save(force_update=True)
    found = Stock.objects.get(pk="s")
    assert (found.qty, found.note) == (1, "theirs")


@pytest.mark.parametrize("name", ["rank", "serial"])
def test_what_a_key_or_a_claim_depends_on_is_stale(name: str) -> None:
    """If another process has changed the key or the claim, nothing is written."""
    stock = changed_elsewhere(**{name: 2})
    with pytest.raises(StaleObject, match=name):
        stock.save(update_fields=[name])
    assert getattr(Stock.objects.get(pk="s"), name) == 2
    assert_consistent()


@pytest.mark.parametrize("name", ["rank", "serial"])
def test_a_bulk_update_writes_what_a_key_or_a_claim_depends_on(name: str) -> None:
    """The update uses the keys of the other process, as it does for changed values."""
    stock = changed_elsewhere(**{name: 2})
    value = getattr(stock, name)
    assert Stock.objects.bulk_update([stock], [name]) == 1
    assert getattr(Stock.objects.get(pk="s"), name) == value
    assert_consistent()


def test_another_version_is_not_written_over() -> None:
    """A version detects the other process."""
    ledger = Ledger.objects.create(code="l", total=1)
    other = Ledger.objects.get(pk="l")
    other.total = 2
    other.save()
    with pytest.raises(StaleObject):
        ledger.save(update_fields=["total"])


@pytest.mark.parametrize(("name", "value"), [("rank", 1), ("qty", 1)])
def test_an_update_through_a_queryset_writes_what_was_read_alike(name: str, value: int) -> None:
    """Another writer changes it between the reading and the writing."""
    Stock.objects.create(code="s", qty=1, rank=1)
    done: list[bool] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "UpdateItem" and not done:
            done.append(True)
            Stock.objects.filter(pk="s").update(**{name: 2})

    with intercept(interceptor):
        assert Stock.objects.all().update(**{name: value}) == 1
    assert getattr(Stock.objects.get(pk="s"), name) == value
    assert_consistent()


@pytest.mark.parametrize("name", ["data", "tags", "labels"])
def test_a_document_that_is_named_unchanged_is_not_written_over_anothers(name: str) -> None:
    """The write would remove another process's additions."""
    stock = changed_elsewhere(**{name: {"data": {"b": 2}, "tags": ["b"], "labels": {"b"}}[name]})
    with pytest.raises(StaleObject, match=name):
        stock.save(update_fields=[name])


def test_a_bulk_update_that_is_refused_leaves_the_object_as_it_was() -> None:
    """The refreshed values of the failed write are not changes of the object."""
    stock = changed_elsewhere(data={"b": 2}, note="theirs", qty=5)
    with pytest.raises(StaleObject, match="data"):
        Stock.objects.bulk_update([stock], ["note", "data"])
    assert (stock.note, stock.qty, stock.data) == ("n", 1, {"a": 1})
    stock.price = 3
    stock.save()
    found = Stock.objects.get(pk="s")
    assert (found.note, found.qty, found.data, found.price) == ("theirs", 5, {"b": 2}, 3)


@pytest.fixture
def board() -> Board:
    """A board with one note."""
    board = Board.objects.create(board_id="b", name="B")
    Note.objects.create(note_id="n", board=board, text="x")
    return board


def take_and_give_back(board: Board, note: Note) -> None:
    """``clear()``, then ``add()``."""
    board.notes.clear()
    board.notes.add(note)


def set_again(board: Board, note: Note) -> None:
    """``set()`` of an object, of none, and of the object again."""
    board.notes.set([note])
    board.notes.set([])
    board.notes.set([note])


def give_back_whole(board: Board, note: Note) -> None:
    """``add(bulk=False)``, which saves the whole object."""
    board.notes.clear()
    board.notes.add(note, bulk=False)


@pytest.mark.parametrize("write", [take_and_give_back, set_again, give_back_whole])
def test_a_child_that_was_taken_away_and_is_given_back_is_one(board: Any, write: Callable[[Any, Any], None]) -> None:
    """The loaded child still refers to its parent."""
    note = Note.objects.get(text="x", board=board)
    write(board, note)
    assert [each.pk for each in board.notes.all()] == [note.pk]
    assert_consistent()


def test_named_write_finishes_due_copies() -> None:
    """Also a write of an attribute that no copy depends on."""
    safe = Safe.objects.create(safe_id="s", name="Front")
    due = {"SS": ["Lock.safe_pin"]}
    get_table().send(compile_action(Update(key_of(safe._stored), set={"copiesDue": due})))
    safe = Safe.objects.get(pk="s")
    safe.save(update_fields=["text"])
    assert "copiesDue" not in Safe.objects.get(pk="s")._stored
