"""Move the open changes of a project's tables to their ends: bump, wait, run the passes, and again.

All changes move in the same bumps. The command can be killed at any point and run again: the table's state records the
phase of each change. Two commands at once do no harm, because each bump is conditional on the state that it was made
of, and a pass has one operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from msgspec.structs import replace

from dynamo_single.backend import migration_record
from dynamo_single.evolution import phases, processes
from dynamo_single.evolution.forms import is_of, is_same, with_change, without_change
from dynamo_single.evolution.migrate_run import Run
from dynamo_single.evolution.processes import Barrier, Process
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.state import SnapshotState
from dynamo_single.evolution.steps import Step, are_independent
from dynamo_single.exceptions import ConfigurationError, TableNotFound
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import OpenChange, TableState
from dynamo_single.orm.rollout.tolerance import accepted_ages, tolerance_of
from dynamo_single.orm.schema import registry
from dynamo_single.table.flow import run
from dynamo_single.table.table import Table, get_table


def _move_together(earlier: phases.Phases, later: phases.Phases) -> bool:
    """Return whether a change may move together with an earlier change of its parts."""
    added = later is phases.ADD_KEY or later is phases.ADD_UNIQUE or later is phases.ADD_NUMBER
    if earlier is phases.ADD_NUMBER:
        return added or later is phases.ADD_VALUE or later is phases.CHANGE_ONCE  # it is counted last
    if earlier is phases.RENAME:
        return added or later is phases.ADD_VALUE
    return earlier is phases.ADD_VALUE and (added or later is phases.ADD_VALUE or later is phases.CHANGE_ONCE)


@dataclass(frozen=True)
class TableChange:
    """An open change, and the table that records it under a type of items."""

    alias: str
    item_type: str
    change: OpenChange

    def __str__(self) -> str:
        return f"{self.change.migration}: {self.change.parameters['label']}"


def migration_loader() -> MigrationLoader:
    """Return the loader of the migrations on disk, including squashed ones: they may have started open changes."""
    return MigrationLoader(None, ignore_no_migrations=True, replace_migrations=False)


def open_changes() -> list[TableChange]:
    """Return the open changes in the order in which they started.

    Sends a GetItem for each table that has models with migrations. Does not send a request if no migration has
    operations on items.
    """
    graph = migration_loader()
    if not any(map(migration_record.has_items_to_change, graph.disk_migrations.values())):
        return []
    found: list[TableChange] = []
    for alias in aliases(graph):
        with suppress(TableNotFound):
            found += changes_in(alias, run(knowledge.state_of(get_table(alias))))
    return found


def aliases(graph: MigrationLoader) -> list[str]:
    """Return the tables that have models with migrations."""
    states = graph.project_state().models.values()
    return sorted({state.snapshot.alias for state in states if isinstance(state, SnapshotState)})


def changes_in(alias: str, state: TableState) -> list[TableChange]:
    """Return the open changes that a state records, in the order in which they started."""
    found = [TableChange(alias, item_type, change) for item_type, form in state.forms.items() for change in form.opened]
    return sorted(found, key=lambda each: (each.change.migration, each.change.number))


def step_of(found: TableChange) -> tuple[Step, Any]:
    """Return the operation that started a change, with its snapshots, and its migration.

    Raises ``ConfigurationError`` if the migration is no longer on disk.
    """
    app_label, _, name = found.change.migration.partition(".")
    graph = migration_loader()
    migration = graph.disk_migrations.get((app_label, name))
    operations = [] if migration is None else migration.operations
    number = found.change.number
    if number >= len(operations) or type(operations[number]).__name__ != found.change.kind:
        raise ConfigurationError(
            f"{found.change.migration} has started {found.change.parameters['label']!r}, but the migration or its "
            "operation no longer exists. Restore the file, run migrate, and then remove it."
        )
    return steps_of(graph, migration)[number], migration


def known_step(found: TableChange, this: Run) -> Step:
    """Return the operation that started a change: the one that a run has announced, else as ``step_of()``."""
    announced: Step | None = this.announced.get((found.change.migration, found.change.number))
    return step_of(found)[0] if announced is None else announced


def steps_of(graph: MigrationLoader, migration: Any) -> dict[int, Step]:
    """Return a migration's operations on items by their numbers, each with the snapshots before and after it."""
    return steps_in(graph.project_state((migration.app_label, migration.name), at_end=False), migration)


def steps_in(state: ProjectState, migration: Any) -> dict[int, Step]:
    """Return the same, of a migration whose files may not be written yet. The state moves on with its operations."""
    found: dict[int, Step] = {}
    for number, operation in enumerate(migration.operations):
        before = state.models.get((migration.app_label, getattr(operation, "model_name", "").lower()))
        operation.state_forwards(migration.app_label, state)
        if getattr(operation, "changes_items", False) and isinstance(before, SnapshotState):
            after = state.models.get((migration.app_label, operation.name_after().lower()))
            if isinstance(after, SnapshotState):  # RemoveModel leaves no state, and does not change items
                found[number] = Step(
                    operation, migration.app_label, before.snapshot, after.snapshot, (migration.name, number)
                )
    return found


@dataclass(frozen=True)
class _Moving:
    """An open change with its operation and its next phase. ``following`` is ``None`` after the last phase."""

    found: TableChange
    step: Step

    @property
    def change(self) -> OpenChange:
        return self.found.change

    @property
    def phase(self) -> phases.Phase:
        return self.step.phases[self.change.phase]

    @property
    def passes(self) -> tuple[phases.Pass, ...]:
        found = self.phase.back if self.change.is_reverted else self.phase.passes
        if self.step.phases is phases.PAUSE and self.change.is_former and not found:
            return ("drop old",) if self.change.phase else ("drop new",)
        return found

    @property
    def following(self) -> int | None:
        number = self.change.phase + (-1 if self.change.is_reverted else 1)
        return number if 0 <= number < len(self.step.phases) else None

    @property
    def ends(self) -> bool:
        """Whether the next bump ends the change: it has no further phase, or the last one without work."""
        if self.following is None:
            return True
        phase = self.step.phases[self.following]
        is_last = self.following == (0 if self.change.is_reverted else len(self.step.phases) - 1)
        return is_last and not (phase.back if self.change.is_reverted else phase.passes)

    @property
    def counts(self) -> bool:
        return "count" in self.passes

    @property
    def follows_code(self) -> bool:
        """Whether the change waits for running code, and for other changes of the items that it writes."""
        return self.step.operation.follows_code

    @property
    def rewrites(self) -> frozenset[str]:
        """The types of the items that the change writes."""
        own = frozenset({self.found.item_type, self.step.before.item_type, self.step.after.item_type})
        return self.step.operation.rewrites(self.found.alias, own)

    @property
    def refuses_more(self) -> bool:
        """Whether the next phase rejects former code that the current phase accepts."""
        if self.following is None or self.change.is_reverted:
            return False
        return self.phase.refused in ("nobody", "after") and self.step.phases[self.following].refused in (
            "before",
            "everybody",
        )


def drive(alias: str, this: Run, *, reverting: OpenChange | None = None) -> bool:
    """Move all open changes of a table as far as possible; return whether none is left.

    Each round sends a GetItem of the state, the requests of the passes, and a GetItem and a PutItem for the bump. A
    wait sends a Query of the presence items each second. Raises the errors of ``run_work()``; the rest stays as it is.
    """
    table = get_table(alias)
    while True:
        knowledge.lease_now(table)  # other runs wait for this process, as for any other
        state = _present_state(alias, this)
        left = [_Moving(each, known_step(each, this)) for each in changes_in(alias, state)]
        left.sort(key=lambda each: each.follows_code)
        if not left:
            return True
        if reverting is None and (turned := [each.change for each in left if each.change.is_reverted]):
            _turn(table, turned, this)
            continue
        free = [each for place, each in enumerate(left) if not any(_blocks(other, each) for other in left[:place])]
        if reverting is None:
            active = free
        elif not (active := [each for each in left if is_same(each.change, reverting)]):
            return True  # earlier changes wait until it is their turn
        counting = all(each.counts for each in active)
        ready = [each for each in active if (counting or not each.counts) and not _outdated(each, state)]
        measure_fence(table, state, this)
        if not _is_settled(table, state, this):
            this.say("    The rest has to wait for processes: run migrate again without --no-wait.")
            return False
        for each in ready:
            if each.change.phase or each in free:
                _run_passes(each, this)  # a change that waited for another change has nothing to revert
        held = _held_back(table, ready, state, this)
        moved = [each for each in ready if each not in held]
        if not moved:
            _report_outdated(active, state, this)
            return False
        _bump(table, moved, this)


def _present_state(alias: str, this: Run) -> TableState:
    """Return the current state of a table. The first bump sets the phases of an earlier release's changes."""
    table = get_table(alias)
    state = run(knowledge.state_of(table))
    if not (state.former and changes_in(alias, state)):
        return state
    return knowledge.change(table, lambda found: taken_over(alias, found, this))


def taken_over(alias: str, state: TableState, this: Run) -> TableState:
    """Return the state of an earlier release with the phase of each open change, or any other state unchanged.

    Raises ``ConfigurationError`` unless the run is forced. Sends no request.
    """
    if not state.former:
        return state
    this.refuse_former(get_table(alias))
    for found in changes_in(alias, state):
        form = state.forms[found.item_type]
        form, number = known_step(found, this).form_change.taken_over(form)
        change = replace(found.change, phase=number, since=state.revision + 1, is_former=True)
        state = state.with_form(found.item_type, with_change(form, change))
    return replace(state, former="")


def _blocks(earlier: _Moving, later: _Moving) -> bool:
    """Return whether a change must end before another change of the same items moves."""
    if earlier.rewrites.isdisjoint(later.rewrites):
        return False
    if later.follows_code:
        return True
    if are_independent(earlier.step.operation.touched(), later.step.operation.touched()):
        return False
    return not _move_together(earlier.step.phases, later.step.phases)


def _outdated(each: _Moving, state: TableState) -> list[str]:
    """Return the models whose items do not have the schema of this code yet, if the change writes them by this code."""
    found: list[str] = []
    for item_type in sorted(each.rewrites) if each.follows_code and each.passes else ():
        model = registry.model_of_type(each.found.alias, item_type)
        label = "" if model is None else model._meta.label_lower
        forms = {
            name: form
            for name, form in state.forms.items()
            # Another current model may have had the label before.
            if label in (form.label, *form.labels) and registry.model_of_type(each.found.alias, name) in (None, model)
        }
        if model is not None and any(
            name != item_type or not is_of(form, Snapshot.of(model)) for name, form in forms.items()
        ):
            found.append(label)
    return found


def _report_outdated(active: Sequence[_Moving], state: TableState, this: Run) -> None:
    """Report the migrations that changes wait for. Raise ``ConfigurationError`` for a change that is being reverted."""
    for each in active:
        title, found = each.change.parameters["label"], ", ".join(_outdated(each, state))
        if found and each.change.is_reverted:
            raise ConfigurationError(
                f"Cannot revert {title!r}: items of {found} do not have the schema of this code. Nothing was written. "
                f"Revert it with the code of {each.change.migration}."
            )
        if found:
            this.say(f"    {title} waits for later migrations of {found}: run migrate without the name of a migration.")


def _turn(table: Table, turned: Sequence[OpenChange], this: Run) -> None:
    """Let changes go forwards again whose migration was being reverted by a command that has ended."""

    def forwards(state: TableState) -> TableState:
        for item_type, form in state.forms.items():
            for each in form.opened:
                if each.is_reverted and any(is_same(each, other) for other in turned):
                    later = replace(each, is_reverted=False, since=state.revision + 1)
                    state = state.with_form(item_type, with_change(state.forms[item_type], later))
        return state

    # A bump: what the ended command sent late must not arrive after the next pass.
    knowledge.change(table, forwards, moves=True)


def measure_fence(table: Table, state: TableState, this: Run) -> None:
    """Measure once a run how late the table's endpoint takes a signature, and record it: six GetItems."""
    if table.name in this.measured:
        return
    this.measured.add(table.name)
    tolerance = tolerance_of(accepted_ages(table)) or 0.0
    place = table.settings.place
    if state.fences.get(place) != tolerance:
        knowledge.change(table, lambda each: replace(each, fences={**each.fences, place: tolerance}))
    if not tolerance and not table.settings.is_local:
        this.say(
            f"    {place} accepts requests regardless of the age of their signature: a process that was suspended "
            "between two steps for longer than its lease can still write items of the former schema unnoticed."
        )


def _is_settled(table: Table, state: TableState, this: Run) -> bool:
    """Wait until everybody goes by the last bump; return ``False`` if that takes time and the run must not wait."""
    if not state.moved or table.replaced:
        return True  # a test table has no other processes
    return Barrier(table, state, state.moved, knowledge.bumped_by(table, state)).wait(this)


def _run_passes(each: _Moving, this: Run) -> None:
    for name in each.passes:
        each.step.run_pass(name, each.change, this)


def _held_back(table: Table, ready: Sequence[_Moving], state: TableState, this: Run) -> list[_Moving]:
    """Return the changes that running processes with former code cannot follow.

    A process counts as running if it responds to a new revision within a lease. Killed and suspended processes do not
    hold a change back.
    """
    needed = {id(each): _needed(each, state) for each in ready}
    wanted = [each for each in ready if needed[id(each)]]
    if not wanted or this.forced or table.replaced:
        return []

    def lacking(each: _Moving) -> list[Process]:
        return [one for one in found if one.lacks(needed[id(each)])]

    found, now = processes.processes(table)
    if not any(lacking(each) for each in wanted):
        return []
    if not this.waits:
        return wanted
    asked = knowledge.change(table, replace).revision
    ends = now + knowledge.lease_of(table, state)
    while now < ends and any(one.heard < asked for each in wanted for one in lacking(each)):
        this.wait(processes.LOCAL_POLL if table.settings.is_local else processes.POLL)
        found, now = processes.processes(table)
    stopped = []
    for each in wanted:
        living = [one for one in lacking(each) if one.heard >= asked]
        if living:
            stopped.append(each)
            for one in living:
                this.say(f"    {one.describe(now)} has code of before {one.lacks(needed[id(each)])}")
            would, forced = "be rejected", "rejects them now"
            if each.follows_code:
                would, forced = "not know the new values", "does not wait for them"
            this.say(
                f"    {each.change.parameters['label']} is not applied: {len(living)} "
                f"{'process' if len(living) == 1 else 'processes'} would {would}. Deploy, and run migrate again; "
                f"--force {forced}."
            )
    return stopped


def _needed(each: _Moving, state: TableState) -> set[str]:
    """Return the migrations without which code cannot follow the next phase of a change."""
    if each.following is None or each.change.is_reverted:
        return set()
    is_waiting = each.refuses_more or each.follows_code
    needed = {each.change.migration} if is_waiting else set()
    if "new key" in each.step.phases[each.following].parts.keys() - each.phase.parts.keys():
        # Code that does not have an attribute cannot write the keys that name it.
        form = state.forms[each.found.item_type]
        names = {name for key in each.step.new_keys for name in key.stored.values()}
        # Processes report only their last migration. A squashed one sorts before the migrations that it replaces.
        needed |= {min(form.names_of(form.changed[name])) for name in names if name in form.changed}
    return needed


def _bump(table: Table, moved: Sequence[_Moving], this: Run) -> None:
    """Move changes by one phase, and end the changes that are in their last phase."""
    moves = any(_moves_code(each) for each in moved)

    def bumped(state: TableState) -> TableState:
        for each in moved:
            state = _moved_on(state, each)
        return state

    knowledge.change(table, bumped, moves=moves)
    for each in moved:
        if each.ends:
            each.step.delete_checkpoints()


def _moves_code(each: _Moving) -> bool:
    """Return whether a bump changes what code writes or reads."""
    if each.following is None:
        return False
    one, other = each.phase, each.step.phases[each.following]
    return (one.parts, one.refused) != (other.parts, other.refused)


def _moved_on(state: TableState, each: _Moving) -> TableState:
    """Return the state with a change in its next phase; the same one if another command was faster."""
    name = each.step.recorded_type(state)
    form = state.forms.get(name)
    if form is None or each.change not in form.opened:
        return state
    following, step = each.following, each.step
    if following is not None:
        form = step.form_change.in_phase(form, following)
        form = with_change(form, replace(each.change, phase=following, since=state.revision + 1))
    if not each.ends:
        return state.with_form(name, form)
    form = step.form_change.ended(without_change(form, each.change), is_reverted=each.change.is_reverted)
    return step.with_ended_form(state, name, form, is_reverted=each.change.is_reverted)
