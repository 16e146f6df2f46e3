"""Several writes that happen together or not at all, and reads at one point in time: DynamoDB's transactions.

``django.db.transaction.atomic()`` is for SQL and never rolls DynamoDB back; use this module's ``atomic()`` for objects
in the table. The module associates blocks with contexts, and ``orm.effects.send`` sends their contents.
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
from dynamo_single.orm.where import declared_conditions
from dynamo_single.table.flow import call_sync, run
from dynamo_single.table.request import MAX_ACTIONS, MAX_TOKEN
from dynamo_single.table.table import get_table

F = TypeVar("F", bound=Callable[..., Any])


def atomic(function: F | None = None, *, token: str | None = None) -> Any:
    """Collect the writes of a block, and send them as one TransactWriteItems when it ends without an exception.

    It is a context manager and a decorator, also for asynchronous code. No write is sent before the end: an exception
    discards all of them, and a read of a pending item raises ``PendingWrite``. An inner block joins the outer one; its
    exception discards only its own writes.

    A block has up to 100 actions, each on another item; unique values and derived items count too. One more raises
    ``NotSupported`` when it is added. A single action is sent as a plain request, unless it adds to a stored number. An
    empty block sends no request.

    ``token`` is an idempotency token of up to 36 characters: a block that is repeated with it within ten minutes is
    executed once. A block with other contents raises ``TokenReused``.
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    if token is not None and not isinstance(token, str):
        raise InvalidValue(f"A token is a string of 1 to {MAX_TOKEN} characters, not {shown(token)}.")
    if token is not None and not 0 < len(token) <= MAX_TOKEN:
        raise InvalidValue(f"A token has 1 to {MAX_TOKEN} characters, not {len(token)}.")
    block = Atomic(token)
    return block if function is None else block(function)


class Atomic:
    """The context manager and decorator of ``atomic()``; each ``with`` is a separate block."""

    def __init__(self, token: str | None = None) -> None:
        self._token = token
        self._entered: list[_Entered] = []

    def __call__(self, function: F) -> F:
        """Return a function or coroutine function each call of which runs in a separate block."""
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
    """The state at the start of a ``with``: in a new block, or in the surrounding one."""

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
        block = Block(token, limit=MAX_ACTIONS)
        return _Entered(block, pending.enter(block))
    if token is not None:
        raise NotSupported("Only the outermost atomic() block has a token: an inner one is sent with it.")
    return _Entered(around, None)


def _leave(entered: _Entered, *, failed: bool) -> bool:
    """End a ``with``, and return whether its block has to be sent now."""
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
    """Call a function after the block's writes are in the table, or immediately outside a block.

    Functions are called in order. They are not called if the block, or the inner block of the call, is discarded.
    """
    block = pending.current()
    if block is None:
        function()
    else:
        block.check_open("on_commit() cannot wait")
        block.callbacks.append(partial(call_sync, function))


def require(obj: DynamoModel, condition: object = None) -> None:
    """Make the block conditional on a stored object that the block does not write.

    ``condition`` is a ``Q`` or a condition of PynamoDB; without one, the object must exist. Raises ``ConditionNotMet``
    at the end of the block.
    """
    block = pending.current()
    if block is None:
        raise NotSupported("require() is for the inside of an atomic() block: it is checked when the block is sent.")
    model = type(obj)
    if obj._stored is None:
        raise ValueError(f"{model._meta.object_name} object can't be required because it is not stored.")
    run(knowledge.ask(registry.layout_of(model)))
    wanted = declared_conditions.read_precondition(model, condition)
    check = Check(key_of(obj._stored), join((ITEM_EXISTS, wanted)))
    name = named(obj)

    def explain(action: Action, found: Item | None) -> Exception:
        return condition_error(Subject(obj), wanted, found)

    block.add(model._options.alias, Entry(lambda: name, (check,), (), explain, lambda: None))


def read(*querysets: Any) -> list[list[Any]]:
    """Return the objects of some querysets at one point in time: one strongly consistent TransactGetItems.

    Returns a list of objects for each queryset. Each queryset must name complete primary keys, as ``filter(pk=...)``
    and ``filter(pk__in=...)`` do. Up to 100 items in total, at twice the capacity of a consistent read.
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
                "read() accepts unsliced querysets of complete primary keys, such as filter(pk=...); this is "
                f"a {plan.kind} of {queryset.model._meta.label}."
            )
    found = run(single.transactional_items(get_table(*aliases), plans))
    return [
        [decode.instance(queryset.model, item) for item in items]
        for queryset, items in zip(querysets, found, strict=True)
    ]
