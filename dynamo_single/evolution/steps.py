"""One operation of a migration with the snapshots before and after it: its phases, its passes, and its counts.

A change can also add counts: new counters of the model, and the counts of its checked references. The target of a
``checked`` reference stores the count under a separate name. Code of before maintains neither, so that a migration
counts only once it is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Final

from dynamo_single.evolution import migrate_run
from dynamo_single.evolution.backfill import Options, Report, Task, Work, delete_checkpoints, run_work
from dynamo_single.evolution.backfill.counts import count_items, rename_number
from dynamo_single.evolution.backfill.work import digest_of
from dynamo_single.evolution.forms import FormChange, keys_of
from dynamo_single.evolution.migrate_run import Run
from dynamo_single.evolution.phases import DECLARE, Pass, Phases
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import ConfigurationError, MigrationRunning, MigrationStopped
from dynamo_single.orm.effects.counters import CountTarget
from dynamo_single.orm.rollout import knowledge, schedules
from dynamo_single.orm.rollout.states import KeyTemplates, OpenChange, StoredForm, TableState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.references import Referrers, name_of_count, references
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import run
from dynamo_single.table.lease import Lease
from dynamo_single.table.table import Table, get_table

#: The parts that an operation touches if it may read or change any part of the model.
EVERYTHING: Final = frozenset({"*"})


def are_independent(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether operations on one model that touch these parts do not depend on each other's order."""
    return EVERYTHING not in (one, other) and one.isdisjoint(other)


def has_new_counts(before: Snapshot, after: Snapshot) -> bool:
    """Return whether the change adds a count."""
    return bool(_new_counters(before, after) or _reference_counts(after).keys() - _reference_counts(before).keys())


def count_tasks(before: Snapshot, after: Snapshot) -> tuple[Task, ...]:
    """Return one task for each added count; for a removed one, what counts it again if the removal is reverted."""
    is_removed = not has_new_counts(before, after)
    if is_removed:
        before, after = after, before
    found: list[tuple[str, Callable[[], CountTarget | None]]] = [
        (after.item_type, partial(_counter, after, stored)) for stored in _new_counters(before, after)
    ]
    for name in sorted(_reference_counts(after).keys() - _reference_counts(before).keys()):
        stored = _reference_counts(after)[name]
        if is_removed and not _is_checked(after, stored):
            continue  # code that does not count must not read either: apply.backwards() names another command
        counting = _reference(after, stored, name)
        found.append((counting.model._options.item_type, partial(_is_same_count, counting)))
    return tuple(count_items(*each) for each in found)


def moved_counts(before: Snapshot, after: Snapshot, renamed: tuple[str, str] = ("", "")) -> tuple[Task, ...]:
    """Return the tasks that rename the counts of checked references whose type or physical name changes."""
    old, new = renamed
    pairs = [
        (each, after.attributes.get(new if name == old else name))
        for name, each in before.attributes.items()
        if each.checked
    ]
    names = [
        (name_of_count(before.item_type, one.stored), name_of_count(after.item_type, other.stored))
        for one, other in pairs
        if other is not None and other.checked
    ]
    return tuple(rename_number(one, other) for one, other in names if one != other)


def _is_checked(snapshot: Snapshot, stored: str) -> bool:
    """Return whether the current model checks a reference."""
    model = registry.model_of_type(snapshot.alias, snapshot.item_type)
    field = None if model is None else _field(model, stored)
    return field is not None and field.attribute.checked


def _is_same_count(counting: CountTarget) -> CountTarget:
    return counting


def _new_counters(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the physical names of counters that are new or count something else than before."""
    known = {before.attribute_fingerprint(name) for name, each in before.attributes.items() if each.counted}
    counted = {name: each.stored for name, each in after.attributes.items() if each.counted}
    return [stored for name, stored in counted.items() if after.attribute_fingerprint(name) not in known]


def _reference_counts(snapshot: Snapshot) -> dict[str, str]:
    """Return the physical names of the counts on reference targets, each with the reference's physical name."""
    found = (each.stored for each in snapshot.attributes.values() if each.checked)
    return {name_of_count(snapshot.item_type, stored): stored for stored in found}


def _counter(after: Snapshot, stored: str) -> CountTarget | None:
    """Return a counter as the current model declares it, or ``None`` if the model no longer has it."""
    model = _model(after)
    counter = next((each for each in registry.counters_of(model) if each.attr_name == stored), None)
    return None if counter is None else CountTarget(model, stored, getattr(model, counter.children), counter.condition)


def _reference(after: Snapshot, stored: str, name: str) -> CountTarget:
    """Return a checked reference as the current model declares it."""
    field = _field(_model(after), stored)
    if field is None:
        raise ConfigurationError(
            f"Cannot count references: {after.item_type} no longer has a reference with an on_delete that is stored as "
            f"{stored!r}. Deploy the code that has the reference, and run migrate with that code."
        )
    target = field.related_model._meta.concrete_model
    return CountTarget(target, name, Referrers(target, field))


def _field(model: type[DynamoModel], stored: str) -> Any:
    return next((each for each in references(model) if each.attribute.attr_name == stored), None)


def _model(after: Snapshot) -> type[DynamoModel]:
    model = registry.model_of_type(after.alias, after.item_type)
    if model is None:
        raise ConfigurationError(
            f"Cannot count objects: no model has items of type {after.item_type}. Deploy the code that has the model, "
            "and run migrate with that code."
        )
    return model


#: The migration's name for an operation that runs outside ``manage.py migrate``, where the name is unknown.
UNNAMED_MIGRATION: Final = "?"


class ItemsChange:
    """What an operation does to the items of one model. The defaults are those of a change without work on items."""

    #: The phases of the change, unless they depend on the snapshots: one of the tables of ``evolution/phases``.
    kind: ClassVar[Phases] = DECLARE
    #: Whether the passes write items of other models by the current code. They wait until no running process has code
    #: of before the migration, although none is rejected, and until all other changes of these items have ended.
    follows_code: ClassVar[bool] = False

    model_name: str

    def describe(self) -> str:
        """Return a description of one line."""
        raise NotImplementedError

    def name_after(self) -> str:
        """Return the model's name after the operation."""
        return self.model_name

    def phases(self, before: Snapshot, after: Snapshot) -> Phases:
        """Return the phases of the change."""
        return self.kind

    def passes(self, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Return the tasks of each pass that the phases name, in order."""
        return {}

    def passes_in(self, app_label: str, before: Snapshot, after: Snapshot) -> Mapping[Pass, Sequence[Task]]:
        """Return the tasks of each pass, if they depend on the app of the model."""
        return self.passes(before, after)

    def rewrites(self, alias: str, own: frozenset[str]) -> frozenset[str]:
        """Return the types of the items in a table that the passes change; ``own`` are those of the model."""
        return own

    def values(self, before: Snapshot, after: Snapshot) -> tuple[str, ...]:
        """Return the physical names that items may lack until the change has ended."""
        return ()

    def renamed(self, before: Snapshot, after: Snapshot) -> tuple[str, str] | None:
        """Return the names before and after of an attribute that keeps its values under another physical name."""
        return None

    def hint(self, before: Snapshot, after: Snapshot) -> str:
        """Return a cheaper way, or what has to be added by hand, for ``makemigrations`` to print; else nothing."""
        return ""

    def left_to_do(self, app_label: str) -> str:
        """Return a sentence about another command that the user has to run, or an empty string."""
        return ""

    def indexes(self) -> Sequence[str]:
        """Return the indexes that the table must have before an item is changed."""
        return ()

    def touched(self) -> frozenset[str]:
        """Return the parts that the operation reads or changes: ``attribute:x``, ``index:x``, ``rule:x`` or ``*``."""
        return EVERYTHING


@dataclass(frozen=True)
class Step:
    """One operation of a migration, with the snapshots before and after it.

    ``place`` contains the migration's name and the operation's number. It defaults to the values of the current run.
    """

    operation: ItemsChange
    app_label: str
    before: Snapshot
    after: Snapshot
    place: tuple[str, int] = ("", 0)

    def __post_init__(self) -> None:
        # The run applies another migration later.
        object.__setattr__(self, "place", self.place if self.place[0] else _operation_id(self.operation))

    @property
    def label(self) -> str:
        """The model's label after the operation."""
        return f"{self.app_label}.{self.operation.name_after()}".lower()

    @property
    def label_before(self) -> str:
        """The model's label before the operation."""
        return f"{self.app_label}.{self.operation.model_name}".lower()

    @property
    def table(self) -> Table:
        """The table that stores the items."""
        return get_table(self.after.alias)

    @cached_property
    def phases(self) -> Phases:
        """The phases of the change."""
        return self.operation.phases(self.before, self.after)

    @cached_property
    def tasks(self) -> Mapping[Pass, Sequence[Task]]:
        """The tasks of each pass; the counts of the current models are a pass of their own."""
        passes = self.operation.passes_in(self.app_label, self.before, self.after)
        return {**passes, "count": count_tasks(self.before, self.after)}

    @property
    def forward_tasks(self) -> tuple[Task, ...]:
        """The tasks of all passes, in the order in which they run."""
        return tuple(task for phase in self.phases for name in phase.passes for task in self.tasks.get(name, ()))

    @cached_property
    def new_keys(self) -> list[KeyTemplates]:
        """The keys on indexes that the change adds."""
        before, after = keys_of(self.before), keys_of(self.after)
        return [key for text, key in after.items() if text not in before]

    @cached_property
    def form_change(self) -> FormChange:
        """The effect of the operation on the recorded form."""
        operation, before, after = self.operation, self.before, self.after
        return FormChange(
            before,
            after,
            (self.label_before, self.label),
            self.phases,
            f"{self.app_label}.{self.place[0]}",
            operation.values(before, after),
            operation.renamed(before, after),
        )

    def change(self, phase: int = 0) -> OpenChange:
        """Return the record that the table keeps while the change is open."""
        migration, number = self.place
        parameters = {"number": str(number), "label": self.operation.describe()}
        return OpenChange(type(self.operation).__name__, f"{self.app_label}.{migration}", parameters, phase)

    def run_pass(self, name: Pass, change: OpenChange, this: Run) -> None:
        """Run the tasks of a pass. A pass that has already ended in this phase sends one GetItem for each task."""
        migration, number = self.place
        mark = digest_of(self.label, type(self.operation).__name__, self.before, self.after, change.since)
        table, state = self.table, run(knowledge.state_of(self.table))
        options = replace(
            this.options,
            progress=this.tell,
            repairs=this.forced,
            lease=knowledge.lease_of(table, state),
            lease_now=partial(_lease_now, table, state.moved),
        )
        for place, task in enumerate(self.tasks.get(name, ())):
            label = self.operation.describe()
            work = Work(self.app_label, migration, number, name.replace(" ", "-"), label, task, step=place, mark=mark)
            this.begin(table)
            this.say(f"    {_run(work, table, options, this)}")

    def delete_checkpoints(self) -> None:
        """Delete the checkpoints of the migration, which has ended or moved on."""
        delete_checkpoints(self.table, self.app_label, self.place[0])

    def renames_from(self, label: str) -> bool:
        """Return whether the change renames the model with a label, which another model may get."""
        return label == self.label_before != self.label

    def recorded_type(self, state: TableState, *, is_reverted: bool = False) -> str:
        """Return the item type under which the table records the model's form.

        Another model may have had the label before.
        """
        item_type = (self.after if is_reverted else self.before).item_type
        labels = {self.label, self.label_before}
        found = [name for name, form in state.forms.items() if form.label in labels]
        found += [name for name, form in state.forms.items() if labels & {*form.labels}]
        return item_type if item_type in state.forms else next(iter(found), item_type)

    def with_ended_form(self, state: TableState, name: str, form: StoredForm, *, is_reverted: bool) -> TableState:
        """Return the state with the form after the change, under the item type that the items have now."""
        one, other = (self.after, self.before) if is_reverted else (self.before, self.after)
        target = other.item_type if name == one.item_type else name
        state = state if target == name else state.with_form(name, None)
        state = state.with_form(target, form)
        is_whole = one.is_sharded and not other.is_sharded
        return schedules.without_schedule(state, one.item_type) if is_whole else state


def _run(work: Work, table: Table, options: Options, this: Run) -> Report:
    """Run work; wait at most a lease for an operator that was killed, else raise ``MigrationRunning``."""
    ends = time.monotonic() + options.lease + 1
    is_told = False
    while True:
        try:
            return run_work(work, table, options)
        except MigrationRunning as error:
            if not this.waits or time.monotonic() > ends:
                raise
            if not is_told:
                this.say(f"    {error}")
                is_told = True
            this.wait(min(1.0, options.lease))


def _lease_now(table: Table, moved: int) -> Lease | None:
    """Return the lease of this process; raise ``MigrationStopped`` if the table's state has moved on."""
    lease, now = knowledge.lease_now(table)
    if now != moved:
        raise MigrationStopped(
            "Another migrate command has taken over the open changes of this table. Nothing more was written."
        )
    return lease


def _operation_id(operation: ItemsChange) -> tuple[str, int]:
    """Return the name of the operation's migration, and the operation's index there."""
    migration = migrate_run.current_run().migration
    for number, each in enumerate(() if migration is None else migration.operations):
        if each is operation:
            return migration.name, number
    return UNNAMED_MIGRATION, 0
