"""Several writes that happen together or not at all, and reads of one moment: DynamoDB's transactions.

``django.db.transaction.atomic()`` is about SQL and never rolls DynamoDB back; this module's ``atomic()`` is the real
thing for objects in the table. It ties blocks to contexts; ``orm.effects.send`` sends
what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Token
from functools import partial, wraps
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Any, TypeVar, cast

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.conditions.terms import join
from dynamo_single.orm.effects import send
from dynamo_single.orm.effects.base import Subject
from dynamo_single.orm.effects.write import condition_error
from dynamo_single.orm.items import decode
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests import atomic_block as pending
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Action, Check, Item, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.values import named, shown
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where import declared
from dynamo_single.table.flow import local, run
from dynamo_single.table.request import MAX_TOKEN
from dynamo_single.table.table import get_table

F = TypeVar("F", bound=Callable[..., Any])


def atomic(function: F | None = None, *, token: str | None = None) -> Any:
    """Collect the writes of a block, and send them as one TransactWriteItems when it ends without an exception.

    A context manager and a decorator, with ``async`` as well. Nothing is sent before the end: an exception discards
    everything, and a read of what is pending raises ``PendingWrite``. An inner block joins the outer one; its exception
    discards what it wrote itself. Up to 100 actions, each item once: unique values and derived items count too.
    One action is sent as a plain request, unless it adds to what is stored, and an empty block sends nothing.

    ``token`` is an idempotency token of up to 36 characters: a block that is repeated with it within ten minutes is
    carried out once, and ``TokenReused`` if it does something else.
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    if token is not None and not isinstance(token, str):
        raise InvalidValue(f"A token is a text of 1 to {MAX_TOKEN} characters, not {shown(token)}.")
    if token is not None and not 0 < len(token) <= MAX_TOKEN:
        raise InvalidValue(f"A token has 1 to {MAX_TOKEN} characters, not {len(token)}.")
    block = Atomic(token)
    return block if function is None else block(function)


class Atomic:
    """What ``atomic()`` gives; each ``with`` is a block of its own."""

    def __init__(self, token: str | None = None) -> None:
        self._token = token
        self._entered: list[_Entered] = []

    def __call__(self, function: F) -> F:
        """Run a function, or a coroutine function, in a block of its own for each call."""
        token = self._token
        if iscoroutinefunction(function):

            @wraps(function)
            async def within_async(*args: object, **kwargs: object) -> Any:
                async with Atomic(token):
                    return await cast("Callable[..., Coroutine[Any, Any, Any]]", function)(*args, **kwargs)

            return cast("F", within_async)

        @wraps(function)
        def within(*args: object, **kwargs: object) -> Any:
            with Atomic(token):
                return function(*args, **kwargs)

        return cast("F", within)

    def __enter__(self) -> None:
        self._entered.append(_enter(self._token))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entered = self._entered.pop()
        if _leave(entered, failed=kind is not None):
            run(_finished(entered.block))

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entered = self._entered.pop()
        if _leave(entered, failed=kind is not None):
            await _finished(entered.block)


class _Entered:
    """Where one ``with`` began: in a block of its own, or in the one around it."""

    def __init__(self, block: Block, outer: Token[Block | None] | None) -> None:
        self.block = block
        self.outer = outer
        self.writes = len(block.entries)
        self.callbacks = len(block.callbacks)


def _enter(token: str | None) -> _Entered:
    around = pending.current()
    if around is not None:
        around.check_open("An atomic() block cannot begin here")
    if around is None:
        block = Block(token)
        return _Entered(block, pending.enter(block))
    if token is not None:
        raise NotSupported("Only the outermost atomic() block has a token: an inner one is sent with it.")
    return _Entered(around, None)


def _leave(entered: _Entered, *, failed: bool) -> bool:
    """End a ``with``; tells whether a block is to be sent now."""
    if failed:
        entered.block.discard(entered.writes)
        entered.block.drop_callbacks(entered.callbacks)
    if entered.outer is None:
        return False
    entered.block.ended = True
    pending.leave(entered.outer)
    return not failed


async def _finished(block: Block) -> None:
    try:
        await send.send_block(block)
    except BaseException:
        block.discard()
        block.drop_callbacks()
        raise
    for callback in block.callbacks:
        await callback()


def on_commit(function: Callable[[], Any]) -> None:
    """Call a function once the block's writes are in the table; at once, outside of any block.

    In the order of the calls, and not at all if the block, or the inner block that it was called in, is discarded.
    """
    block = pending.current()
    if block is None:
        function()
    else:
        block.check_open("on_commit() cannot wait")
        block.callbacks.append(partial(local, function))


def require(obj: DynamoModel, condition: object = None) -> None:
    """Let the block be sent only if a stored object, which the block does not write, meets a condition.

    A ``Q`` or a condition of PynamoDB; without one, that the object is there. ``ConditionNotMet`` at the block's end.
    """
    block = pending.current()
    if block is None:
        raise NotSupported("require() is for the inside of an atomic() block: it is checked when the block is sent.")
    model = type(obj)
    if obj._stored is None:
        raise ValueError(f"{model._meta.object_name} object can't be required because it is not stored.")
    run(knowledge.ask(registry.layout_of(model)))
    wanted = declared.read_precondition(model, condition)
    check = Check(key_of(obj._stored), join((ITEM_EXISTS, wanted)))
    name = named(obj)

    def explain(action: Action, found: Item | None) -> Exception:
        return condition_error(Subject(obj), wanted, found)

    block.add(model._options.alias, Entry(lambda: name, (check,), (), explain, lambda: None))


def read(*querysets: Any) -> list[list[Any]]:
    """What some querysets of single objects give, as of one moment: one TransactGetItems, strongly consistent.

    Gives a list of objects for each queryset. Each has to say whole primary keys, as ``filter(pk=...)`` and
    ``filter(pk__in=...)`` do. Up to 100 items together, at twice the capacity of a consistent read.
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactGetItems.html
    """
    aliases = {queryset.model._options.alias for queryset in querysets}
    if len(aliases) > 1:
        raise NotSupported(f"read() takes objects of one table, not of {', '.join(sorted(aliases))}.")
    if not aliases:
        return []
    plans = [queryset._plan() for queryset in querysets]
    for queryset, plan in zip(querysets, plans, strict=True):
        if plan.kind not in {"get", "batch_get", "empty"} or queryset.query.is_sliced:
            raise NotSupported(
                f"read() takes querysets of whole primary keys, unsliced, as filter(pk=...) is; this one is a "
                f"{plan.kind} of {queryset.model._meta.label}."
            )
    found = run(single.at_once(get_table(*aliases), plans))
    return [
        [decode.instance(queryset.model, item) for item in items]
        for queryset, items in zip(querysets, found, strict=True)
    ]
