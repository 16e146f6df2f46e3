"""This process's copy of a table's state, its lease on that state, and its presence item.

A process that works on a table with migrations reads the state item every ``LEASE / 2`` seconds, and every 2 seconds
while a migration is open: one strongly consistent GetItem. An idle process does not read. A process writes its
presence item once when it begins, once for each new revision, and deletes it at its end. Models of a table without
migrations and shards share one GetItem every ``UNDIVIDED_REFRESH`` seconds, without a presence item. This module does
not depend on migrations' files or commands.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.core.signals import setting_changed
from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import BeginAgain, ConditionFailed, Conflict
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.requests.actions import ITEM_MISSING, Put
from dynamo_single.orm.requests.compiler import compile_action, item_key
from dynamo_single.orm.rollout import following, state_item, states
from dynamo_single.orm.rollout.own_migrations import has_migrations, newest_migrations
from dynamo_single.orm.rollout.presence import Presence
from dynamo_single.orm.rollout.schedules import Divided, known_schedule, refuse_divided, schedule_in, with_schedule
from dynamo_single.orm.rollout.states import StoredForm, TableState, refuse_foreign
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.bindings import ModelBinding, Rollout
from dynamo_single.orm.schema.keys.shards import Schedule
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import call_sync, run
from dynamo_single.table.lease import MARGIN, Lease
from dynamo_single.table.request import Request
from dynamo_single.table.table import CONFLICT_ATTEMPTS, Table, get_table

logger = logging.getLogger("dynamo_single.migrations")

#: The number of seconds for which a process may use the state it has read; and the number for a local endpoint, without
#: other processes.
LEASE: Final = 60.0
LOCAL_LEASE: Final = 2.0
#: The longest lease of a process that cannot write its presence item.
UNREGISTERED_LEASE: Final = 2.0
#: How many seconds apart the state is read while a migration is open, and after it has refused a model.
OPEN_REFRESH: Final = 2.0
REFUSED_REFRESH: Final = 1.0
#: The same for a table without migrations and shards: only later code could divide its items into shards.
UNDIVIDED_REFRESH: Final = 300.0
#: The maximum number of seconds that an object's time may be in the future: some processes do not know later entries
#: yet.
AHEAD: Final = 60
#: By how many seconds a process's clock may be wrong, the most that AWS accepts in a signature:
#: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html
SKEW: Final = 300
#: How many seconds an entry of a schedule begins after it is recorded, at the least, by DynamoDB's clock: until then
#: processes that do not know it may create objects, whose time may lie ahead by a process's clock.
LEAD: Final = int(LEASE + MARGIN) + AHEAD + SKEW


class _Known(Struct, eq=False):
    """The state of one table, and the time of the read. ``renew_at`` is by ``time.monotonic()``."""

    state: TableState = TableState()
    lease: Lease | None = None
    read_at: float = -math.inf
    adopted_at: float = -math.inf
    renew_at: float = -math.inf
    #: By how many seconds the server's clock is ahead of this process's.
    ahead: float = 0.0
    presence: Presence | None = None
    #: Leases of earlier revisions with requests that may still be under way.
    older: list[Lease] = field(default_factory=list)
    #: The apps whose migrations were never applied, which the log reports once.
    unsaid: set[str] = field(default_factory=set)
    #: The number of replacements of the table's contents at that time.
    replaced: int = 0
    #: The last bump of this process: its revision, and the server's time in the response.
    bumped: tuple[int, float] = (0, 0.0)


_tables: dict[Table, _Known] = bindings.known_tables
_adopting = threading.RLock()


async def binding_for(model: type[DynamoModel]) -> ModelBinding:
    """Return the binding that an operation carries to its end, with the lease of its requests.

    Sends the requests in the module's docstring. Raises ``FormNotApplied`` if this code cannot follow the form of the
    model's items; the state is then read again at most every ``REFUSED_REFRESH`` seconds. Raises ``ForeignTable`` for
    the table of another project, and ``UnexpectedItem`` for a damaged state item.
    """
    table = get_table(model._options.alias)
    if table.replaced and not _follows(model):
        found = bindings.binding_of(model)
        found.is_settled = True  # a test table has no later code
        return found
    known = await _known(table)
    binding = bindings.binding_of(model)
    if binding.refusal is not None and time.monotonic() >= known.read_at + REFUSED_REFRESH and _asks(table):
        await _read(table, known)
        binding = bindings.binding_of(model)
    if binding.refusal is not None:
        raise binding.refusal.with_traceback(None)
    return binding


async def ask(layout: ModelLayout) -> ModelBinding:
    """Return ``binding_for()`` the model of a layout."""
    return await binding_for(registry.model_of(layout))


def binding_now(model: type[DynamoModel]) -> ModelBinding:
    """Return the binding of a model in this thread, to plan a query with or to read its shards.

    Sends the requests of ``binding_for()``, except for a model without migrations and shards. The requests of a query
    read the state for such a model.
    """
    table = get_table(model._options.alias)
    found = bindings.binding_if_known(model, table)
    if found is not None:
        return found
    return run(binding_for(model)) if _follows(model) and _asks(table) else bindings.binding_of(model)


async def _known(table: Table) -> _Known:
    known = _tables.get(table)
    if known is None:
        known = _tables.setdefault(table, _Known())
    now = time.monotonic()
    lease = known.lease
    # A test whose table was never migrated does not read its state again.
    is_replaced = known.replaced != table.replaced and (known.state.revision or not known.replaced or _shards(table))
    if now >= known.renew_at or is_replaced or (lease is not None and lease.is_closed):
        if not _asks(table):
            if _serves(table.settings.alias) and not table.replaced:
                await _register(table, known)  # as a process without a revision
            known.renew_at, known.replaced = math.inf, table.replaced
            return known
        if lease is not None and not lease.is_closed and now < known.read_at + lease.length * 0.75:
            known.renew_at = now + lease.length / 8  # other threads continue
        await _read(table, known)
    return known


def _asks(table: Table) -> bool:
    return table.settings.migrations == "check" and table.settings.keeps_own_items


async def _read(table: Table, known: _Known) -> None:
    """Read the state, and go by it: a GetItem, and an UpdateItem if it has another revision than before."""
    served = _serves(table.settings.alias)
    while True:
        presence = await _register(table, known) if served else None
        begun = time.monotonic()
        state, served_at = await _stored_state(table)
        date = served_at if served_at is not None else time.time()
        if await call_sync(partial(_take, table, known, presence, state, begun, date)):
            return
        # The presence item was taken away, since the process was silent for too long: it registers again.


def _take(
    table: Table, known: _Known, presence: Presence | None, state: TableState, begun: float, served_at: float
) -> bool:
    """Adopt a state, after recording it; return ``False`` if the presence item is gone.

    One thread does so at a time: no other thread may write between the presence item and the lease that it opens.
    """
    with _adopting:
        before = known.lease
        if before is not None and before.revision > state.revision and begun < known.adopted_at:
            return True  # another thread has read a later one
        if presence is not None and not _has_said(table, known, presence, state, served_at):
            return False
        _adopt(table, known, state, begun, served_at)
        return True


def _has_said(table: Table, known: _Known, presence: Presence, state: TableState, served_at: float) -> bool:
    """Record the revision before the process adopts a state; return ``False`` if the presence item is gone."""
    before = known.lease
    if before is not None and before.revision == state.revision:
        if known.older or presence.is_fenced not in (None, _is_fenced(table, state)):
            return _say(presence, table, state, _under_way(known, state.revision))
        return True
    if before is None and _is_as_measured(table, state) and not _is_waited_for(table, state, served_at):
        return True  # its first response belongs to the next revision
    if before is not None:
        # Requests no longer begin under the former revision; the process counts its requests in flight.
        before.close()
        known.older.append(before)
    return _say(presence, table, state, _under_way(known, state.revision))


def _is_as_measured(table: Table, state: TableState) -> bool:
    """Return whether this process has the fence if the table's endpoint has one, which is measured."""
    place = table.settings.place
    return place in state.fences and _is_fenced(table, state) == bool(state.fences[place])


def _is_waited_for(table: Table, state: TableState, served_at: float) -> bool:
    """Return whether a command may be waiting until all processes go by this revision."""
    return _is_open(state) or served_at < state.moved_at + 2 * lease_of(table, state) + MARGIN


def _is_fenced(table: Table, state: TableState) -> bool:
    return fence_of(table, state) is not None


def _say(presence: Presence, table: Table, state: TableState, under_way: int) -> bool:
    return presence.say(table, state.revision, under_way, is_fenced=_is_fenced(table, state))


def _under_way(known: _Known, revision: int) -> int:
    """Return the oldest revision of which requests are under way."""
    known.older = [each for each in known.older if not each.is_idle]
    return min((each.revision for each in known.older), default=revision)


async def _register(table: Table, known: _Known) -> Presence | None:
    if not table.settings.keeps_own_items:
        return None
    if table.replaced or (known.presence is not None and known.presence.is_refused):
        return None if table.replaced else known.presence
    with _adopting:
        if known.presence is None or known.presence.is_of_another_process:
            known.presence = Presence(newest_migrations())
            known.older.clear()
    await call_sync(partial(known.presence.register, table, is_blind=not _asks(table)))
    return known.presence


def _adopt(table: Table, known: _Known, state: TableState, begun: float, served_at: float) -> None:
    if begun < known.adopted_at and (begun < known.read_at or state.revision < known.state.revision):
        return  # another thread has read it since
    known.adopted_at = time.monotonic()
    length = lease_of(table, state)
    if known.presence is not None and known.presence.is_refused:
        length = min(length, UNREGISTERED_LEASE)
    lease = known.lease
    is_same = lease is not None and lease.revision == state.revision and known.replaced == table.replaced
    if state.damage is not None:
        logger.error("%s Until then only models of apps without migrations are read and written.", state.damage)
    is_changed = state != known.state  # a restored item may have the revision of the damaged one
    known.state, known.read_at, known.ahead, known.replaced = state, begun, served_at - time.time(), table.replaced
    if table.replaced:
        lease = None  # no other process uses a test table
        known.renew_at = begun + OPEN_REFRESH if _is_open(state) else math.inf
    elif _serves(table.settings.alias):
        if lease is None or lease.is_closed or not is_same:
            lease = Lease(state.revision, served_at + length, fence_of(table, state), length=length)
        else:
            lease.deadline = max(lease.deadline, served_at + length)
        lease.ends = begun + length
        known.renew_at = begun + min(length / 2, OPEN_REFRESH if _is_open(state) else math.inf)
    else:
        lease = None
        known.renew_at = begun + UNDIVIDED_REFRESH
    if lease is not known.lease or not is_same or is_changed:
        if known.lease is not None and known.lease is not lease:
            known.lease.close()
        known.lease = lease
        bindings.begin_state(table.settings.alias, state, lease)


def _is_open(state: TableState) -> bool:
    return any(form.opened for form in state.forms.values())


def lease_of(table: Table, state: TableState) -> float:
    """Return for how many seconds a process may go by a state."""
    return state.lease or (LOCAL_LEASE if table.settings.is_local else LEASE)


def fence_of(table: Table, state: TableState) -> float | None:
    """Return how many seconds late AWS accepts a signature at the table's endpoint; ``None`` without a fence."""
    return (state.fences.get(table.settings.place) or None) if table.is_fenced else None


@bindings.shared
def _serves(alias: str) -> bool:
    """Return whether code has to follow a table's state: it has models with migrations, or sharded ones."""
    return any(_follows(model) for model in registry.all_models() if model._options.alias == alias)


def _follows(model: type[DynamoModel]) -> bool:
    return has_migrations(model._meta.app_label) or registry.declared_layout(model).sharding is not None


def _shards(table: Table) -> bool:
    return any(
        registry.declared_layout(model).sharding is not None
        for model in registry.all_models()
        if model._options.alias == table.settings.alias
    )


def recorded_form(model: type[DynamoModel]) -> StoredForm | None:
    """Return the form of a model's items at this process's last read, without a request; ``None`` without one."""
    layout = registry.declared_layout(model._meta.concrete_model)
    known = _tables.get(get_table(layout.alias))
    return None if known is None else known.state.forms.get(layout.item_type)


def lease_now(table: Table) -> tuple[Lease | None, int]:
    """Return the lease of this process, and the revision of the last bump; read as ``binding_for()``."""
    known = run(_known(table))
    return known.lease, known.state.moved


def own_process(table: Table) -> str:
    """Return the sort key of this process's presence item in a table; an empty string without such an item."""
    known = _tables.get(table)
    return "" if known is None or known.presence is None else known.presence.key


def bumped_by(table: Table, state: TableState) -> float:
    """Return the server's time, in epoch seconds, by which a table had its last bump.

    The request of another process was dated, so that it was executed within a lease after its preparation.
    """
    known = _tables.get(table)
    revision, served = (0, 0.0) if known is None else known.bumped
    is_own = revision == state.moved and served >= state.moved_at
    return served if is_own else state.moved_at + lease_of(table, state)


def server_time(table: Table) -> float:
    """Return the server's current time in epoch seconds, by this process's clock and the server's last response."""
    known = _tables.get(table)
    return clock.timestamp() + (0.0 if known is None else known.ahead)


# How bindings follow a state.


def _followed(model: type[DynamoModel], state: TableState, before: Rollout | None) -> tuple[Rollout | None, Any, Any]:
    """Return how a model's items differ from its declaration, its shards, and why the code cannot follow."""
    layout = registry.declared_layout(model._meta.concrete_model)
    table = get_table(layout.alias)
    try:
        refuse_foreign(table.settings, state)
        refuse_divided(state, layout)
        shards = schedule_in(state, Divided.of(layout))
        if not has_migrations(layout.label.partition(".")[0]):
            return None, shards, None
        form = following.form_in(state.whole(), layout)
        if form is None:
            _warn(table, layout)
            return None, shards, None
        rules = _rules(model)
        return following.follow(layout, form, rules, () if before is None else before.twins), shards, None
    except Exception as error:  # it is the model's refusal, which each of its operations raises
        return None, None, error


bindings.set_follower(_followed)


_rules: Callable[[type[DynamoModel]], dict[str, str]]


def set_rules(rules: Callable[[type[DynamoModel]], dict[str, str]]) -> None:
    """Take the function that returns the fingerprints of a model's unique rules, each with its name for messages."""
    global _rules
    _rules = rules


def _warn(table: Table, layout: ModelLayout) -> None:
    known, app = _tables.get(table), layout.label.partition(".")[0]
    if known is None or table.replaced or app in known.unsaid:
        return
    known.unsaid.add(app)
    logger.warning(
        "The app %r has migrations, but the table %r has no record of %s: the migration that adds it was not applied "
        "there. Items that do not match the model are not detected, and a renamed attribute reads as None. Run "
        "manage.py migrate, with --fake-initial if the items already exist.",
        *(app, table.name, layout.label),
    )


# Shards


def schedule(layout: ModelLayout) -> Schedule:
    """Return the known shards of a sharded model; read them in this thread if necessary."""
    return binding_now(registry.model_of(layout)).schedule or Schedule()


def recorded_schedule(table: Table, item_type: str) -> Schedule:
    """Return the shards of a type of items, as they are recorded now: a GetItem."""
    found = run(state_of(table)).shards.get(item_type)
    return Schedule() if found is None else known_schedule(found, item_type)


async def begin(layout: ModelLayout) -> None:
    """Record one shard for a model of which nothing is recorded, before its first item is written: as ``change()``."""
    table = get_table(layout.alias)
    if (await ask(layout)).schedule is not None:
        return
    divided = Divided.of(layout.origin)
    assert divided is not None  # noqa: S101 - who begins has a sharded model
    await call_sync(partial(record, table, divided, lambda found: found or Schedule()))
    stale()  # another process may have recorded another number first
    await ask(layout)


def record(table: Table, divided: Divided, work: Callable[[Schedule | None], Schedule]) -> Schedule:
    """Record the shards that ``work`` derives from the recorded ones, if they differ. Requests are as ``change()``."""
    found: list[Schedule] = []

    def recorded(state: TableState) -> TableState:
        found.append(work(schedule_in(state, divided)))
        return with_schedule(state, divided, found[-1])

    change(table, recorded)
    return found[-1]


# The state item


async def state_of(table: Table) -> TableState:
    """Return the state of a table: one strongly consistent GetItem. Raise ``UnexpectedItem`` if it is damaged.

    A table with ``OWNS = False`` and without a companion has an empty state. No request reads it.
    """
    return (await _stored_state(table))[0].whole()


async def _stored_state(table: Table) -> tuple[TableState, float | None]:
    if not table.settings.keeps_own_items:
        return TableState(), None
    request = Request("GetItem", {"Key": item_key(states.state_key(table.settings)), "ConsistentRead": True})
    answer, served_at = await table.ask_dated(request)
    return state_item.read_state(answer["Item"]) if answer.get("Item") else TableState(), served_at


def change(table: Table, work: Callable[[TableState], TableState], *, moves: bool = False) -> TableState:
    """Change a table's state: a GetItem and a conditional PutItem; repeat both after a concurrent change.

    With ``moves`` the change is a bump: only code of this revision and the previous one may run at the same time. The
    first change of a table of an earlier release is also a bump. The PutItem is dated, so that it happens within a
    lease after ``moved_at``. If ``work`` returns its argument, no request writes. Raises ``Conflict`` after as many
    attempts as a transaction has. Raises
    ``ConfigurationError`` for a table that cannot have a state.
    """
    key = states.state_key(table.settings)
    for _ in range(CONFLICT_ATTEMPTS):
        before, served_at = run(_stored_state(table))
        wanted = work(before.whole())
        if wanted is before:
            return before
        after = replace(wanted, revision=before.revision + 1)
        begun = served_at if served_at is not None else time.time()
        if not after.former:
            after = replace(after, fenced_since=after.fenced_since or after.revision)
        if moves or (before.former and not after.former):
            after = replace(after, moved=after.revision, moved_at=begun)
        condition = (
            Stored(state_item.REVISION, "=", ({"N": str(before.revision)},)) if before.revision else ITEM_MISSING
        )
        request = compile_action(Put(state_item.state_item(after, key), condition))
        length = lease_of(table, before)
        lease = Lease(before.revision, begun + length, fence_of(table, before), length=length)
        try:
            _, written_at = run(table.ask_dated(replace(request, lease=lease)))
        except ConditionFailed:
            continue
        except BeginAgain:
            continue  # this process was stopped since it read the state, before the write
        if after.moved == after.revision:
            known = _tables.setdefault(table, _Known())
            known.bumped = after.revision, time.time() if written_at is None else written_at
        stale()
        return after
    raise Conflict(
        f"Other processes changed the state of {table.name} during each attempt. Nothing was written. Retry."
    )


def stale() -> None:
    """Read the states again before the next operation."""
    for known in _tables.values():
        known.renew_at = -math.inf


def forget() -> None:
    """Clear all states: the next operation reads again."""
    for known in _tables.values():
        if known.lease is not None:
            known.lease.close()
        known.lease, known.state, known.read_at, known.renew_at = None, TableState(), -math.inf, -math.inf
    bindings.forget_states()


def _after_fork() -> None:
    """Let a forked process register itself and read the states, before it sends anything."""
    global _adopting
    _adopting = threading.RLock()
    bindings.forget_in_fork()
    for known in _tables.values():
        if known.lease is not None:
            known.lease.close()
    _tables.clear()


os.register_at_fork(after_in_child=_after_fork)


def _forget(*, setting: str, **_: object) -> None:
    if setting in {"DYNAMO_SINGLE", "MIGRATION_MODULES"}:
        forget()
        bindings.begin_generation()  # whether a model is followed may be otherwise
        _tables.clear()


setting_changed.connect(_forget, dispatch_uid="dynamo_single.orm.rollout")

__all__ = ["AHEAD", "MARGIN", "ask", "begin", "binding_for", "binding_now", "change", "forget", "state_of"]
