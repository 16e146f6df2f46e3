"""Create the missing objects of rows, each conditional on no item with its key.

A read by keys precedes the writes, so a repeated import pays only for missing objects. This module does not call hooks,
send signals or depend on SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from operator import attrgetter
from typing import Any

from msgspec import Struct

from dynamo_single.contrib.sql_import.rows import Row
from dynamo_single.exceptions import (
    AlreadyExists,
    DynamoSingleError,
    EmptyKeyPart,
    InvalidValue,
    ItemTooLarge,
    MissingReference,
    NotSupported,
    RequestFailed,
    StaleObject,
    TableUnavailable,
    TransactionCancelled,
    UniqueViolation,
    UnreadableItem,
)
from dynamo_single.orm.effects import copies
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.compose import NewObject, taken
from dynamo_single.orm.effects.derived import Version
from dynamo_single.orm.items import decode, version
from dynamo_single.orm.items.encode import is_same, possible_keys
from dynamo_single.orm.items.stored import NAME as STORED
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import binding_of
from dynamo_single.orm.write import bulk_insert
from dynamo_single.orm.write.batch_transactions import BulkWrite, ObjectWriter, Outcome
from dynamo_single.orm.write.create import create, new_object
from dynamo_single.table import batches, names
from dynamo_single.table.flow import as_stream, run
from dynamo_single.table.request import MAX_ACTIONS, MAX_BATCH_KEYS
from dynamo_single.table.table import get_table

#: The errors of a row with their reasons, which do not contain values. Any other error ends the import.
_REASONS: tuple[tuple[type[DynamoSingleError], Callable[[Any], str]], ...] = (
    (EmptyKeyPart, lambda error: str(error).partition(". ")[0]),  # it names the attribute and the key
    (UnreadableItem, lambda error: "another object that it depends on cannot be read"),
    (UniqueViolation, lambda error: f"{', '.join(error.fields)}: another object has this value"),
    (MissingReference, lambda error: "refers to an object that is not stored, or is in the trash"),
    (ItemTooLarge, lambda error: "the item would be larger than 400 KB"),
    (InvalidValue, lambda error: "does not fit"),
    (NotSupported, lambda error: "cannot be stored, for example because it takes more than 100 actions"),
    (StaleObject, lambda error: "another process kept changing an object that it depends on"),
    (TransactionCancelled, lambda error: "DynamoDB rejected the item"),
    (RequestFailed, lambda error: f"DynamoDB rejected the item ({error.code})"),
)


def reason_of(error: DynamoSingleError) -> str:
    """Return the reason for refusing a row; raise an error that does not depend on the row."""
    if not isinstance(error, TableUnavailable):
        for kind, reason in _REASONS:
            if isinstance(error, kind):
                return reason(error)
    raise error


class Writer(Struct, frozen=True):
    """Writes the rows of one model, or only compares them if ``writes`` is ``False``."""

    model: Any
    writes: bool = True

    def write(self, rows: Sequence[Row]) -> None:
        """Set the outcome of each row.

        Sends a strongly consistent BatchGetItem for each 100 rows. Missing objects take a BatchExecuteStatement for
        each 25, a TransactWriteItems for each 100 actions if they have dependent items, or a PutItem each if they
        expire.
        """
        run(self._write(rows))

    async def _write(self, rows: Sequence[Row]) -> None:
        await taken(self.model)
        keyed: dict[ItemKey, Row] = {}
        doubles = []
        for row in rows:
            if row.outcome is not None:
                continue
            try:
                keys = possible_keys(self.model, row.values)
            except DynamoSingleError as error:
                row.settle("refused", reason_of(error))
                continue
            if keyed.keys() & {*keys}:
                doubles.append(row)
            else:
                keyed |= dict.fromkeys(keys, row)
        await self._compare(keyed)
        new = [row for row in {id(row): row for row in keyed.values()}.values() if row.outcome is None]
        if self.writes:
            await self._create(new)
        else:
            for row in new:
                row.settle("created")
        if doubles:
            # Two rows have the same key: compare the second row with the first.
            await self._write(doubles)

    # Compare with stored objects.

    async def _compare(self, keyed: Mapping[ItemKey, Row]) -> None:
        """Settle the rows of stored objects."""
        if not keyed:
            return
        table = get_table(self.model._options.alias)
        for key, item in (await single.stored_items(table, [*keyed])).items():
            if not single.has_expired(item):
                keyed[key].settle(*self._compared(keyed[key], item))

    def _compared(self, row: Row, item: Item) -> tuple[Any, str]:
        if item.get(names.ITEM_TYPE) != {"S": self.model._options.item_type}:
            return "different", "an object of another model has its key"
        attributes = registry.attributes_of(self.model)
        try:
            stored = decode.values_of(self.model, item)
            differ = [name for name, value in row.values.items() if not is_same(attributes[name], value, stored[name])]
        except DynamoSingleError:
            return "different", "the stored object cannot be read"
        if differ:
            return "different", f"the stored object has other values: {', '.join(differ)}"
        if names.DELETED_AT in item and "deleted_at" not in row.values:
            return "different", "the stored object is in the trash"
        return "existed", ""

    # Create missing objects.

    async def _create(self, rows: Sequence[Row]) -> None:
        for start in range(0, len(rows), MAX_BATCH_KEYS):
            some = rows[start : start + MAX_BATCH_KEYS]
            sources = await copies.read_sources(self.model, [row.obj for row in some], None)
            with copies.known_sources(sources):
                made = [(row, new) for row in some if (new := await self._made(row)) is not None]
            plain = [(row, new) for row, new in made if bulk_insert.is_inserted(new.binding)]
            rest = [row for row, new in made if not bulk_insert.is_inserted(new.binding)]
            if len(plain) > 1 and batches.can_insert(get_table(self.model._options.alias)):
                rest = [*await self._insert(plain), *rest]
            else:
                rest = [*(row for row, _ in plain), *rest]
            await self._put(rest)

    async def _made(self, row: Row) -> NewObject | None:
        """Return the item of a row, or settle the row."""
        row.obj.__dict__.update(
            {
                name: value
                for name, value in version.next_values(self.model, None).items()
                if row.obj.__dict__.get(name) is None
            }
        )
        try:
            return await new_object(row.obj, None, raw=True, lenient=False)
        except DynamoSingleError as error:
            _refuse(row, error)
            return None

    async def _insert(self, made: Sequence[tuple[Row, NewObject]]) -> list[Row]:
        """Insert objects by statements and settle their rows; return the rows that need separate requests."""
        table = get_table(self.model._options.alias)

        async def work(unit: Sequence[tuple[Row, NewObject]]) -> list[Outcome]:
            results = await bulk_insert.insert(table, [new for _, new in unit])
            for (row, _), result in zip(unit, results, strict=True):
                if result.is_written:
                    row.settle("created")
                elif result.found:
                    row.settle(*self._compared(row, result.found))
                elif result.error is not None and not result.is_doubtful:
                    raise result.error
            return [Outcome(row.shown_pk, {}) for row, _ in unit]

        units = bulk_insert.in_batches(made, [bulk_insert.size_of(new) for _, new in made])
        async with aclosing(as_stream(units)) as stream:
            await self._job(len(made)).run(stream, work, lambda unit: [row.shown_pk for row, _ in unit])
        return [row for row, _ in made if row.outcome is None]

    async def _put(self, rows: Sequence[Row]) -> None:
        """Create objects by PutItem requests, or by transactions with their dependent items."""
        if not rows:
            return
        effects = [each for each in effects_of(binding_of(self.model)) if not isinstance(each, Version)]
        job = self._job(len(rows), MAX_ACTIONS if effects else None)

        async def write(row: Row, pending: Block | None) -> Mapping[str, int]:
            if row.obj.__dict__[STORED] is not None:
                row.obj.__dict__[STORED] = None  # set by an earlier attempt
            try:
                await create(row.obj, pending, raw=True, lenient=False)
            except DynamoSingleError as error:
                if pending is not None:
                    raise
                _refuse(row, error)
            return {}

        def skips(row: Row, error: DynamoSingleError) -> bool:
            _refuse(row, error)
            return True

        await job.write_units(rows, ObjectWriter(write, attrgetter("shown_pk"), skips))
        taken = [row for row in rows if row.outcome == "existed"]
        for row in rows:
            if row.outcome is None:
                row.settle("created")
        if taken:
            # Another process created them, or an attempt without a response.
            await self._compare({key: row for row in taken for key in possible_keys(self.model, row.values)})

    def _job(self, total: int, transaction_size: int | None = None) -> BulkWrite:
        return BulkWrite("dynamo_import_sql", self.model, None, total, transaction_size=transaction_size)


def _refuse(row: Row, error: DynamoSingleError) -> None:
    if isinstance(error, AlreadyExists):
        row.settle("existed")
    elif isinstance(error, MissingReference):
        row.settle("deferred", reason_of(error))
    else:
        row.settle("refused", reason_of(error))
