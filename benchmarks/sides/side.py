"""The operations of a side, and the sides that are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import count
from typing import Any

from benchmarks.orders import CUSTOMER, key
from dynamo_single.conf import TableSettings

#: The numbers of objects in operations on many objects.
IN_BULK, IN_BLOCK = 100, 10


class Side:
    """One client with a separate connection. An operation that the client does not support is ``None``.

    ``listed`` and ``long_list`` are the customers of two lists of different lengths. Operations on an individual
    item use the first item of ``listed``.
    """

    name = ""
    get: Callable[[], Any]
    create: Callable[[], Any]
    save: Callable[[], Any]
    update: Callable[[], Any] | None = None
    objects: Callable[[], Sequence[Any]]
    rows: Callable[[], Sequence[Any]] | None = None
    many: Callable[[], Sequence[Any]]
    in_bulk: Callable[[], Sequence[Any]]
    #: Change one number in a document, and return it; ``document_key`` is the key of the item.
    document: Callable[[], int] | None = None
    document_key: dict[str, str]
    atomic: Callable[[], Any] | None = None
    bulk_create: Callable[[], Any]
    bulk_in_transactions: Callable[[], Any] | None = None
    put_many: Callable[[], Any] | None = None

    def __init__(self, settings: TableSettings, *, bulk: int) -> None:
        self.settings = settings
        self.table = settings.table_name
        self.bulk = bulk
        self.listed, self.long_list = CUSTOMER, f"{CUSTOMER}-many"
        self.number = 1
        self.key = key(self.listed, self.number)
        self.keys = [key(self.listed, number) for number in range(1, IN_BULK + 1)]
        self._made, self._blocks, self._status, self._stock = count(1), count(1), count(1), count(10_000)
        self.document_key = {"pk": f"DOCUMENT#{self.name}", "sk": "#METADATA"}

    def new(self) -> tuple[str, int]:
        """Return the customer and number of an order that does not exist."""
        return f"{CUSTOMER}-{self.name}", next(self._made)

    def new_block(self) -> str:
        """Return a customer without orders."""
        return f"{CUSTOMER}-{self.name}-{next(self._blocks)}"

    def status(self) -> str:
        """Return a status that is not stored."""
        return f"status {self.name} {next(self._status)}"

    def stock(self) -> int:
        """Return a number that the document does not contain."""
        return next(self._stock)

    def close(self) -> None:
        """Close open resources, except the connections, which belong to the process."""


#: In the order of the table's columns.
MODULES = ("floor", "raw", "aws", "pynamo", "aio", "dynox", "sqlite", "ours")


def sides(settings: TableSettings, *, bulk: int) -> tuple[dict[str, Side], dict[str, str]]:
    """Return a new instance of each side whose package is installed, and the reasons why others are left out."""
    found, left_out = {}, {}
    for kind in _imported(left_out):
        found[kind.name] = kind(settings, bulk=bulk)
    return found, left_out


def _imported(left_out: dict[str, str]) -> Iterator[type[Side]]:
    for module in MODULES:
        try:
            yield from import_module(f"benchmarks.sides.{module}").SIDES
        except ModuleNotFoundError as missing:
            if not missing.name or missing.name.startswith("benchmarks"):
                raise
            left_out[missing.name] = "which is not installed here."
