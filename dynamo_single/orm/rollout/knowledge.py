"""What this process knows of the form of a table's items: one GetItem a process and table, and more while something is
open.

Models whose app has no migrations are asked about shards alone, and a type of items of which the table says nothing
counts as filled. What is filled for a model is known for good. This module must not know migrations' files or commands.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Final, TypeVar

from django.apps import apps
from django.conf import settings
from django.core.signals import setting_changed
from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single.exceptions import ConditionFailed, Conflict, ForeignTable, FormNotApplied, UnexpectedItem
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.plan.unique_lookups import Lookup
from dynamo_single.orm.requests.actions import ITEM_MISSING, Put
from dynamo_single.orm.requests.compiler import compile_action, item_key
from dynamo_single.orm.rollout import compare, old_keys, old_names, states
from dynamo_single.orm.rollout.compare import NOTHING, Missing, missing_in, rules_without_claims
from dynamo_single.orm.rollout.schedules import Divided, known_schedule, refuse_divided, schedule_in, with_schedule
from dynamo_single.orm.rollout.states import StoredForm, TableState, refuse_foreign
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.bindings import ModelBinding, Rollout
from dynamo_single.orm.schema.keys.shards import Schedule
from dynamo_single.orm.schema.layout import ModelLayout, Twin
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import call_sync, run
from dynamo_single.table.request import Request
from dynamo_single.table.table import CONFLICT_ATTEMPTS, Table, get_table

logger = logging.getLogger("dynamo_single.migrations")

#: For how many seconds what is open counts as it was read.
REFRESH: Final = 10.0
#: After how many seconds no process acts any more on what it has read before: a request that began just before the
#: table was asked again takes 46 seconds at most, by the timeouts and the attempts of the settings' defaults.
GRACE: Final = 60.0
#: The same as ``REFRESH`` for the shards of a model; where none are recorded, anybody may record them at once.
SHARDS_REFRESH: Final = 300.0
UNRECORDED_REFRESH: Final = 1.0
#: The same once a process was refused by what it has read: a table that was put right needs no restart.
REFUSED_REFRESH: Final = 1.0
#: How many seconds an entry of a schedule begins after it is recorded, at the least: until then each process has asked
#: again, though its clock and that of who records it are five minutes wrong, the most that a signature may be:
#: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html
LEAD: Final = 1200
#: How many seconds an object's time may lie in the future: what begins later is not known to everybody yet.
AHEAD: Final = 60


T = TypeVar("T")


class _Known(Struct):
    """What was read of one table, and when.

    ``filled`` are the models that lack nothing, but perhaps claims, and ``claimed`` those that lack none of these.
    ``settled`` are the sharded ones that lack nothing, each with the state that says so: it is read again for them.
    """

    filled: set[ModelLayout] = field(default_factory=set)
    settled: dict[ModelLayout, TableState] = field(default_factory=dict)
    claimed: set[ModelLayout] = field(default_factory=set)
    #: By model until when nothing has to be asked: see ``bindings.settled()``.
    until: dict[type[DynamoModel], float] = field(default_factory=dict)
    #: The models whose items no later code has divided into shards, as far as was known at a time.
    undivided: dict[ModelLayout, float] = field(default_factory=dict)
    state: TableState | None = None
    read_at: float = 0.0
    #: The schedules of sharded models, as the state has them.
    schedules: dict[ModelLayout, Schedule] = field(default_factory=dict)
    #: The apps whose migrations were never applied, which the log says once.
    unsaid: set[str] = field(default_factory=set)
    #: How often the table's contents had been replaced by then.
    replaced: int = 0

    @property
    def age(self) -> float:
        """For how many seconds it is known."""
        return time.monotonic() - self.read_at

    async def accepted(self, table: Table, longest: float, check: Callable[[TableState], T]) -> T:
        """What a check makes of a state that was read at most ``longest`` seconds ago.

        It is read again before it is refused another time, at most every ``REFUSED_REFRESH`` seconds.
        """
        state = self.state
        if state is None or self.age >= longest:
            return check(await self.read(table))
        try:
            return check(state)
        except (FormNotApplied, ForeignTable, UnexpectedItem):
            if self.age < REFUSED_REFRESH:
                raise
        return check(await self.read(table))

    async def read(self, table: Table) -> TableState:
        """Read it now."""
        # The age is that of the request, and not that of its answer.
        begun = time.monotonic()
        self.replaced = table.replaced
        self.state, self.read_at = await _stored_state(table), begun
        if self.state.damage is not None:
            logger.error(
                "%s Until then only models of apps without migrations are read and written.", self.state.damage
            )
        self.schedules.clear()
        return self.state


_tables: dict[Table, _Known] = bindings.known_tables


async def binding_for(model: type[DynamoModel]) -> ModelBinding:
    """The binding that an operation carries to its end, after ``ask()`` for the model."""
    await ask(registry.layout_of(model))
    return bindings.binding_of(model)


async def ask(layout: ModelLayout) -> Missing:
    """What not every item of a model has; raises ``FormNotApplied`` if the items have another form than the model.

    Sends nothing for a model that is filled, and one strongly consistent GetItem at most every ``REFRESH`` seconds for
    another one, and for one with migrations of which the table says nothing yet. For a sharded model, and for all
    models of a table without migrations together, it sends one every ``SHARDS_REFRESH`` seconds, and while it refuses,
    one every ``REFUSED_REFRESH`` seconds.
    """
    table, layout = get_table(layout.alias), layout.origin
    await check_undivided(table, layout)
    return await _ask_form(table, layout)


async def _ask_form(table: Table, layout: ModelLayout) -> Missing:
    known = _tables.get(table)
    if known is None or layout not in known.filled:
        found = await _ask(table, layout)
        known = _tables.get(table)
    if known is not None and layout in known.filled:
        known.until[registry.model_of(layout)] = math.inf if table.replaced else known.undivided.get(layout, 0.0)
        return NOTHING
    is_sharded = layout.sharding is not None
    return replace(found, schedule=await _schedule(table, layout, SHARDS_REFRESH)) if is_sharded else found


async def _ask(table: Table, layout: ModelLayout) -> Missing:
    # Of this reading: meanwhile another thread may have everything asked again.
    known = _tables.setdefault(table, _Known())
    state = known.state
    if state is not None and known.settled.get(layout) is state:
        return NOTHING
    form = await _form(table, layout)
    found = missing_in(known_layout(layout), form)
    if found != NOTHING or _is_unsaid(table, layout, form):
        form = await _form(table, layout, is_open=True)
        found = missing_in(known_layout(layout), form)
        if _is_unsaid(table, layout, form):
            _warn(table, layout, known.unsaid)
    if found == NOTHING and not _is_unsaid(table, layout, form):
        if layout.sharding is None:
            known.filled.add(layout)
        elif state is not None and state is known.state:
            known.settled[layout] = state
    return found


async def current_layout(layout: ModelLayout) -> ModelLayout:
    """The layout with the names of now, for the next page of a reading that began with this one; asks as ``ask()``.

    It asks nothing about shards, which a reading keeps to its end.
    """
    table, origin = get_table(layout.alias), layout.origin
    known = _tables.get(table)
    if known is None or origin not in known.filled:
        await _ask(table, origin)
    return known_layout(layout)


def known_layout(layout: ModelLayout) -> ModelLayout:
    """A model's layout with the names that its items have now, as far as this process knows; sends nothing."""
    return registry.layout_of(registry.model_of(layout))


def _is_unsaid(table: Table, layout: ModelLayout, form: StoredForm | None) -> bool:
    """Whether the table says nothing of a model that has migrations: its first ``migrate`` is still to come.

    No test table is migrated, and tests count requests.
    """
    return form is None and not table.replaced and _is_asked_about(layout, table)


def _warn(table: Table, layout: ModelLayout, warned: set[str]) -> None:
    app = layout.label.partition(".")[0]
    if app not in warned:
        warned.add(app)
        logger.warning(
            "The app %r has migrations, and the table %r says nothing of %s: the migration that adds it was not "
            "applied there. Nobody notices where its items have another form than the model; a renamed attribute reads "
            "as None. Run manage.py migrate, with --fake-initial if the items are there already.",
            *(app, table.name, layout.label),
        )


def missing(layout: ModelLayout) -> Missing:
    """What a query is planned with, in this thread: as ``ask()``, but for what is asked when a plan is carried out."""
    table, layout = get_table(layout.alias), layout.origin
    known = _tables.get(table)
    return NOTHING if known is not None and layout in known.filled else run(_ask_form(table, layout))


async def check_undivided(table: Table, layout: ModelLayout) -> None:
    """Raise ``FormNotApplied`` if later code has divided a model's items into shards, of which this code knows none.

    Sends one GetItem every ``SHARDS_REFRESH`` seconds for all models without migrations, and nothing for others, which
    are asked about anyway, or for a test table, where only a test could have shards. If what the table says is damaged,
    the log names it, and these models, such as users and sessions, are used as before.
    """
    known, layout = _tables.get(table), layout.origin
    if known is not None and known.undivided.get(layout, 0.0) > time.monotonic():
        return
    if table.replaced:
        return
    known = known or _tables.setdefault(table, _Known())
    if layout.sharding is not None or table.settings.migrations != "check" or _is_asked_about(layout, table):
        known.undivided[layout] = math.inf
        return

    def check(state: TableState) -> None:
        refuse_foreign(table.settings, state)
        refuse_divided(state, layout)

    await known.accepted(table, SHARDS_REFRESH, check)
    known.undivided[layout] = known.read_at + SHARDS_REFRESH


async def ask_rules(layout: ModelLayout, lookups: Sequence[Lookup]) -> frozenset[str]:
    """The fingerprints of the rules that not every item has its claim by, as far as the table says; as ``ask()``."""
    table, layout = get_table(layout.alias), layout.origin
    known = _tables.setdefault(table, _Known())
    if layout in known.claimed:
        return frozenset()
    found = rules_without_claims(await _form(table, layout), lookups)
    if found:
        found = rules_without_claims(await _form(table, layout, is_open=True), lookups)
    if not found:
        known.claimed.add(layout)
    return found


def missing_rules(layout: ModelLayout, lookups: Sequence[Lookup]) -> frozenset[str]:
    """``ask_rules()`` in this thread."""
    known, layout = _tables.get(get_table(layout.alias)), layout.origin
    return frozenset() if known is not None and layout in known.claimed else run(ask_rules(layout, lookups))


async def _form(table: Table, layout: ModelLayout, *, is_open: bool = False) -> StoredForm | None:
    """The form that a model's items have; ``None`` where the table says nothing of it.

    What ``is_open`` is read again, if it was not just now.
    """
    known = _tables.setdefault(table, _Known())
    if not _is_asked_about(layout, table):
        return None

    def fitted(state: TableState) -> StoredForm | None:
        refuse_foreign(table.settings, state.whole())
        refuse_divided(state, layout)
        form = compare.form_in(state, layout)
        _follow(layout, form)
        return form

    return await known.accepted(table, REFRESH if is_open else math.inf, fitted)


def _follow(layout: ModelLayout, form: StoredForm | None) -> None:
    """Begin a generation if a model's items have other names or keys than its binding says.

    Raises ``FormNotApplied`` if the items have another form than the model; the names count nevertheless.
    """
    model = registry.model_of(layout)
    binding = bindings.binding_of(model)
    if form is None:
        bindings.begin_rollout(model, None)
        return
    twins = old_names.twins_of(binding, form)
    if twins != binding.layout.twins:
        bindings.begin_rollout(model, _rollout(form, twins, None if binding.rollout is None else binding.rollout.keys))
    used = bindings.layout_in_use(layout, twins)
    compare.check(used, form)
    bindings.begin_rollout(model, _rollout(form, twins, old_keys.keys_of(used, form)))


def _rollout(form: StoredForm, twins: tuple[Twin, ...], keys: old_keys.Keys | None) -> Rollout | None:
    found = Rollout(twins, keys, form.schema_version)
    return None if found == Rollout() else found


def _is_asked_about(layout: ModelLayout, table: Table) -> bool:
    return table.settings.migrations == "check" and has_migrations(layout.label.partition(".")[0])


@cache
def has_migrations(app_label: str) -> bool:
    """Whether an app has migrations; they are not imported, so that those of SQL models count too, but for Django's."""
    # As Django's loader of migrations finds them, which a process that only serves requests does not import.
    modules = settings.MIGRATION_MODULES
    module = modules[app_label] if app_label in modules else f"{apps.get_app_config(app_label).name}.migrations"
    if module is not None and module.startswith("django."):
        return False
    try:
        spec = None if module is None else find_spec(module)
    except ModuleNotFoundError:
        return False
    # A module that is no package, as dynamo_single.migrations, has none for Django either.
    folders = None if spec is None else spec.submodule_search_locations
    return folders is not None and any(iter_modules(folders))


async def _schedule(table: Table, layout: ModelLayout, longest: float) -> Schedule:
    """The shards of a model, as they were recorded at most ``longest`` seconds ago: one as long as nothing is."""
    known = _tables.setdefault(table, _Known())
    state = known.state
    if state is not None and layout.item_type not in state.shards:
        longest = min(longest, UNRECORDED_REFRESH)
    if known.replaced != table.replaced:
        longest = 0.0

    def check(state: TableState) -> Schedule:
        found = known.schedules.get(layout)
        if found is None:
            refuse_foreign(table.settings, state.whole())
            found = known.schedules[layout] = schedule_in(state, Divided.of(layout)) or Schedule()
        return found

    return await known.accepted(table, longest, check)


def schedule(layout: ModelLayout) -> Schedule:
    """The shards of a sharded model, as this process knows them; asked for in this thread, if it does not."""
    table, layout = get_table(layout.alias), layout.origin
    known = _tables.get(table)
    found = None if known is None or known.replaced != table.replaced else known.schedules.get(layout)
    return found or run(_schedule(table, layout, SHARDS_REFRESH))


def recorded_schedule(table: Table, item_type: str) -> Schedule:
    """The shards of a type of items, as they were recorded at most ``SHARDS_REFRESH`` seconds ago."""
    known = _tables.setdefault(table, _Known())
    state = known.state if known.age < SHARDS_REFRESH and known.replaced == table.replaced else None
    state = run(known.read(table)) if state is None else state
    found = state.whole().shards.get(item_type)
    return Schedule() if found is None else known_schedule(found, item_type)


async def begin(layout: ModelLayout) -> None:
    """Record one shard for a model of which nothing is recorded, before its first item is written: as ``change()``."""
    table, layout = get_table(layout.alias), layout.origin
    await _schedule(table, layout, SHARDS_REFRESH)
    known = _tables.get(table)  # another thread may have forgotten it
    if known is not None and known.state is not None and layout.item_type in known.state.shards:
        return
    divided = Divided.of(layout)
    assert divided is not None  # noqa: S101 - who begins has a sharded model
    await call_sync(partial(record, table, divided, lambda found: found or Schedule()))
    await _schedule(table, layout, 0)


def record(table: Table, divided: Divided, work: Callable[[Schedule | None], Schedule]) -> Schedule:
    """Record the shards that ``work`` makes of what is recorded, if they are others: requests as ``change()``."""
    found: list[Schedule] = []

    def recorded(state: TableState) -> TableState:
        found.append(work(schedule_in(state, divided)))
        return with_schedule(state, divided, found[-1])

    change(table, recorded)
    return found[-1]


async def state_of(table: Table) -> TableState:
    """What a table says now: one strongly consistent GetItem; ``UnexpectedItem`` if it cannot be read."""
    return (await _stored_state(table)).whole()


async def _stored_state(table: Table) -> TableState:
    answer = await table.ask(Request("GetItem", {"Key": item_key(states.STATE_KEY), "ConsistentRead": True}))
    return states.read_state(answer["Item"]) if answer.get("Item") else TableState()


def change(table: Table, work: Callable[[TableState], TableState]) -> TableState:
    """Change what a table says: a GetItem and a conditional PutItem, and again where another process was faster.

    Nothing is written if ``work`` gives back what it was given.
    Raises ``Conflict`` after as many attempts as a transaction has.
    """
    for _ in range(CONFLICT_ATTEMPTS):
        before = run(state_of(table))
        wanted = work(before)
        if wanted is before:
            return before
        after = replace(wanted, revision=before.revision + 1)
        condition = Stored(states.REVISION, "=", ({"N": str(before.revision)},)) if before.revision else ITEM_MISSING
        try:
            table.send(compile_action(Put(states.state_item(after), condition)))
        except ConditionFailed:
            continue
        _tables.clear()
        return after
    raise Conflict(f"What {table.name} says of its items is being changed by other processes all the time; try again.")


def forget() -> None:
    """Know nothing any more: the next query asks again."""
    _tables.clear()
    bindings.forget_rollouts()


def _forget(*, setting: str, **_: object) -> None:
    if setting in {"DYNAMO_SINGLE", "MIGRATION_MODULES"}:
        forget()
        has_migrations.cache_clear()


setting_changed.connect(_forget, dispatch_uid="dynamo_single.orm.rollout")
