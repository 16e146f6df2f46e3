"""Check that every side reads and stores equal data: comparisons are fair only for equal results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.orders import ENTRY, PLACE, attribute_value, document, key, said_by, values
from benchmarks.sides.floor import Floor, plain, texts
from benchmarks.sides.side import IN_BLOCK, IN_BULK, Side

SQL = "Django, SQLite"


def assert_equal(found: Mapping[str, Side], *, listed: int, many: int) -> None:
    """Raise unless all sides return equal data for each operation that they support."""
    floor = found["floor"]
    for side in found.values():
        _same(side, "get", [side.get()], [values(side.listed, side.number)])
        _same(side, "objects", side.objects(), _wanted(side.listed, listed))
        _same(side, "many", side.many(), _wanted(side.long_list, many))
        _same(side, "in_bulk", side.in_bulk(), _wanted(side.listed, IN_BULK))
        _rows(side, listed)
    for side in found.values():
        _writes(side, floor)


def _rows(side: Side, listed: int) -> None:
    if side.rows is None:
        return
    texts = [tuple(str(_bare(value)) for value in row) for row in side.rows()]
    wanted = [(str(number), "open") for number in range(1, listed + 1)]
    if sorted(texts) != sorted(wanted):
        raise AssertionError(f"rows() of {side.name} gave {texts[:2]}.")


def _bare(value: Any) -> Any:
    return next(iter(value.values())) if isinstance(value, dict) else value


def _writes(side: Side, floor: Floor) -> None:
    customer, number = side.create()
    _same(side, "create", [_stored(side, floor, customer, number)], [values(customer, number)])
    for write in (side.save, side.update):
        write()
        read = side if side.name == SQL else floor
        status = said_by(read.get())["status"]
        if not status.startswith(f"status {side.name} "):
            raise AssertionError(f"{side.name} wrote a status, and {status!r} is stored.")
    if side.document is not None:
        stock = side.document()
        found = _item(floor, side.document_key)["data"]["M"]
        if found != attribute_value({**document(), ENTRY: {**document()[ENTRY], PLACE: stock}})["M"]:
            raise AssertionError(f"{side.name} has set a place of a document to {stock}: {found[ENTRY]} is stored.")
    bulks = (side.bulk_create, side.bulk_in_transactions, side.put_many)
    written = [(side.atomic(), IN_BLOCK), *((write(), side.bulk) for write in bulks)]
    for block, count in written:
        ends = (1, count)
        _same(side, "blocks", [_stored(side, floor, block, each) for each in ends], [values(block, e) for e in ends])


def _stored(side: Side, floor: Floor, customer: str, number: int) -> Any:
    if side.name == SQL:
        return side.orders.get(customer=customer, number=number)
    return plain(_item(floor, key(customer, number)))


def _item(floor: Floor, stored_key: dict[str, str]) -> Any:
    return floor.call("GetItem", {"TableName": floor.table, "Key": texts(stored_key)})["Item"]


def _wanted(customer: str, count: int) -> Iterable[dict[str, Any]]:
    return (values(customer, number) for number in range(1, count + 1))


def _same(side: Side, operation: str, read: Sequence[Any], wanted: Iterable[dict[str, Any]]) -> None:
    gave = sorted((said_by(each) for each in read), key=lambda said: said["number"])
    told = sorted((said_by(each) for each in wanted), key=lambda said: said["number"])
    if gave != told:
        raise AssertionError(f"{operation}() of {side.name} gave {len(gave)} orders: {gave[:1]}, and not {told[:1]}.")
