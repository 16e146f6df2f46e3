"""Send an object's write: a plain request for one action, a transaction for several, or later with a block.

A failure raises the error of the object whose action failed. This module does not depend on the creation of actions.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from dynamo_single.exceptions import (
    AlreadyExists,
    BeginAgain,
    ConditionFailed,
    ConditionNotMet,
    Conflict,
    DynamoSingleError,
    NotSupported,
    OutcomeUnknown,
    SourceChanged,
    StaleObject,
    TransactionCancelled,
)
from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items.refresh import changed_attributes
from dynamo_single.orm.requests.actions import Action, Check, Item, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block, Explain
from dynamo_single.orm.requests.compiler import compile_action, compile_transaction
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import MAX_TRANSACTION_SIZE
from dynamo_single.table.table import get_table

#: The attribute of an object's state with the target key of a move without a response.
_UNANSWERED: Final = "_moved_without_an_answer"


async def send_write(obj: DynamoModel, write: Write) -> Item:
    """Send an object's write, or add it to its block; return the object's item after the write.

    Without a response the item lacks the values that DynamoDB computes: the app treats them as not loaded.
    """
    block, lease = write.transition.pending, write.lease or bindings.binding_of(type(obj)).lease
    if block is not None:
        model = type(obj)
        block.bindings.setdefault(model, bindings.binding_of(model))
        block.add(write.alias, write.entry(undo_of(obj, write.transition.after)))
        return write.stored_after(None)
    try:
        actions = [(action, write.explain) for action in write.actions]
        answer = await send_actions(write.alias, actions, returns_item=bool(write.changes), lease=lease)
    except (AlreadyExists, StaleObject, ConditionNotMet) as error:
        unanswered = getattr(obj._state, _UNANSWERED, None) if write.is_move else None
        found = write.executed_item(error, unanswered=unanswered)
        if found is None:
            raise
        return found
    except BaseException as error:
        if write.is_move and write.transition.after is not None and not _is_refusal(error):
            setattr(obj._state, _UNANSWERED, key_of(write.transition.after))
        raise
    return write.stored_after(answer.get("Attributes"))


def explained(write: Write, error: ConditionFailed) -> Item:
    """Raise the object's error for the refused request of a write with one action.

    Return the object's item if an earlier attempt of the request succeeded without a response.
    """
    try:
        raise write.explain(write.own_actions[0], error.item) from error
    except (AlreadyExists, StaleObject, ConditionNotMet) as refusal:
        found = write.executed_item(refusal)
        if found is None:
            raise
        return found


def _is_refusal(error: BaseException) -> bool:
    """Return whether DynamoDB rejected the write; the outcome of any other error is unknown."""
    return any(isinstance(each, ConditionFailed | TransactionCancelled) for each in (error, error.__cause__))


def undo_of(obj: DynamoModel, after: Item | None) -> Callable[[], None]:
    """Return a function that restores an object to its state before the write, except attributes set since then."""
    stored, adding, values = obj._stored, obj._state.adding, dict(obj.__dict__)

    def undo() -> None:
        if after is not None:
            touched_since = changed_attributes(obj, after)
            for name in values.keys() & registry.attributes_of(type(obj)).keys() - touched_since:
                obj.__dict__[name] = values[name]
        obj._stored = stored
        obj._state.adding = adding

    return undo


#: How often to send a block whose lease is over each time.
_LATE_ATTEMPTS: Final = 3


async def send_block(block: Block) -> None:
    """Send all writes of a block as one request; an empty block sends no request."""
    if not block.entries or block.alias is None:
        return
    if block.is_too_large:
        raise NotSupported(
            f"The block writes items of {block.size} bytes together; a transaction takes "
            f"{MAX_TRANSACTION_SIZE}. Write fewer objects in one block."
        )
    explained = [(action, entry.explain) for action, entry in block.actions()]
    # A retry after a lost response must not repeat a change that depends on stored values.
    counts = any(
        isinstance(action, Update) and (action.add or any(change.is_cumulative for change in action.changes))
        for action, _ in explained
    )
    token = block.token or (str(uuid.uuid4()) if counts else None)
    try:
        await _send_in_time(block, explained, token)
    except OutcomeUnknown as error:
        if block.token is None:
            raise
        raise OutcomeUnknown(
            f"{error} Or repeat the block with its token {block.token!r} within ten minutes: DynamoDB carries it out "
            "once.",
            code=error.code,
        ) from error
    except DynamoSingleError as error:
        if not _was_carried_out(block, error):
            raise


async def _send_in_time(block: Block, explained: Sequence[tuple[Action, Explain]], token: str | None) -> None:
    """Send a block's writes under a present lease; repeat it if the lease ended during a pause of this process."""
    assert block.alias is not None  # noqa: S101 - it has writes
    for left in reversed(range(_LATE_ATTEMPTS)):
        lease = await _refuse_outdated(block) or block.lease
        try:
            await send_actions(block.alias, explained, token=token, lease=lease)
        except SourceChanged as error:
            if not isinstance(error.__cause__, BeginAgain) or not block.bindings:
                raise  # a cascade composes its writes again
            if not left:
                raise Conflict(
                    f"The block was sent too late {_LATE_ATTEMPTS} times. Nothing was written; do the block again."
                ) from error
        else:
            return


async def _refuse_outdated(block: Block) -> Lease | None:
    """Return the lease to send a block under; raise ``Conflict`` if the names or keys of items have changed.

    Reads the state of each model as ``knowledge.binding_for()``, because the block may be older than the process's
    state of the table. Actions composed under an earlier revision are valid under the current one if the bindings are
    alike.
    """
    lease: Lease | None = None
    for model, binding in block.bindings.items():
        table = get_table(model._options.alias)
        now = bindings.binding_if_known(model, table) or await knowledge.binding_for(model)
        lease = lease or now.lease
        if now is not binding and (now.rollout, now.schedule) != (binding.rollout, binding.schedule):
            raise Conflict(
                f"A migration has changed the names or keys of {model._meta.label} items since the block wrote "
                "them. Nothing was written; do the block again."
            )
    return lease


def _was_carried_out(block: Block, error: DynamoSingleError) -> bool:
    """Return whether an earlier attempt of the block's request succeeded without a response."""
    cause = error.__cause__
    if not isinstance(cause, ConditionFailed) or not cause.retried:
        return False
    ((action, _),) = block.actions()
    expected = block.item_after(action.key)
    if not expected or not cause.item:
        return not expected and not cause.item
    return {name: normalized_value(value) for name, value in cause.item.items()} == {
        name: normalized_value(value) for name, value in expected.items()
    }


async def send_actions(
    alias: str,
    explained: Sequence[tuple[Action, Explain]],
    *,
    token: str | None = None,
    returns_item: bool = False,
    lease: Lease | None = None,
) -> dict[str, Any]:
    """Send actions as one request, all or none; a failure raises the error that the action's ``Explain`` returns.

    A single action is a plain request, unless there is a ``token`` or it is a check. With ``returns_item``, the
    response to a single update contains the new item. ``lease`` belongs to the binding of the actions. If it has ended,
    it raises ``SourceChanged``, and the caller composes them again.
    """
    table = get_table(alias)
    actions = [action for action, _ in explained]
    if len(actions) == 1 and token is None and not isinstance(actions[0], Check):
        request = compile_action(actions[0], returns_item=returns_item)
    else:
        # All attempts have one token: DynamoDB executes the transaction once.
        request = compile_transaction(actions, table.name, token or str(uuid.uuid4()))
    try:
        return await table.ask_patiently(replace(request, lease=lease) if lease is not None else request)
    except BeginAgain as error:
        knowledge.stale()
        raise SourceChanged(f"{error}") from error
    except ConditionFailed as error:
        action, explain = explained[0]
        raise explain(action, error.item) from error
    except TransactionCancelled as error:
        for (action, explain), reason in zip(explained, error.reasons, strict=False):
            if reason is not None and reason.get("Code") == "ConditionalCheckFailed":
                raise explain(action, reason.get("Item")) from error
        raise
