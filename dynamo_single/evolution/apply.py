"""Apply an operation to a table: record the open change, and convert the items.

``forwards`` starts a change, ``finish`` completes it after all old code has stopped, ``backwards`` reverts it. Each can
be interrupted at any point and run again.

A change can also add counts: new counters of the model, and the counts of its checked references. The target of a
``checked`` reference stores the count under a separate name. Old code does not maintain either, so that a migration
counts only after old code has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.db import DEFAULT_DB_ALIAS, connections

from dynamo_single import clock
from dynamo_single.backend.router import uses_engine
from dynamo_single.evolution import adopt as evolution_adopt
from dynamo_single.evolution import migrate_run
from dynamo_single.evolution.backfill import Task, Work, ensure_indexes, run_work
from dynamo_single.evolution.backfill.counts import count_items
from dynamo_single.evolution.backfill.work import Phase, digest_of
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.state import Difference, form_of
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.effects.counters import CountTarget
from dynamo_single.orm.rollout import knowledge, schedules, shard_record
from dynamo_single.orm.rollout.schedules import Divided, schedule_in
from dynamo_single.orm.rollout.states import OpenChange, StoredForm, TableState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Schedule
from dynamo_single.orm.schema.references import Referrers, name_of_count, references
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.schema.upgrades import operation_text
from dynamo_single.table.flow import run
from dynamo_single.table.table import Table, get_table

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def has_new_counts(before: Snapshot, after: Snapshot) -> bool:
    """Return whether the change adds a count."""
    return bool(_new_counters(before, after) or _reference_counts(after).keys() - _reference_counts(before).keys())


def count_tasks(before: Snapshot, after: Snapshot) -> tuple[Task, ...]:
    """Return one task for each added count."""
    found: list[tuple[str, Callable[[], CountTarget | None]]] = [
        (after.item_type, partial(_counter, after, stored)) for stored in _new_counters(before, after)
    ]
    for name in sorted(_reference_counts(after).keys() - _reference_counts(before).keys()):
        counting = _reference(after, _reference_counts(after)[name], name)
        found.append((counting.model._options.item_type, partial(_is_same_count, counting)))
    return tuple(count_items(*each) for each in found)


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
            f"No reference with an on_delete is stored as {stored!r} in {after.item_type} any more, so that nobody can "
            "say what it counts. Deploy the code that has it, and finish with that."
        )
    target = field.related_model._meta.concrete_model
    return CountTarget(target, name, Referrers(target, field))


def _field(model: type[DynamoModel], stored: str) -> Any:
    return next((each for each in references(model) if each.attribute.attr_name == stored), None)


def _model(after: Snapshot) -> type[DynamoModel]:
    model = registry.model_of_type(after.alias, after.item_type)
    if model is None:
        raise ConfigurationError(
            f"No model has items of type {after.item_type}, so that nobody can say what is counted. Deploy the code "
            "that has, and finish with that."
        )
    return model


#: The migration's name for an operation that runs outside ``manage.py migrate``, where the name is unknown.
UNNAMED_MIGRATION: Final = "?"


class Operation(Protocol):
    """The methods of an operation that this module calls."""

    model_name: str

    def describe(self) -> str:
        """Return a description of one line."""

    def name_after(self) -> str:
        """Return the model's name after the operation."""

    def open_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Return the tasks of ``migrate``."""

    def finish_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Return the tasks of ``migrate --finish``."""

    def drop_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Return the tasks that ``migrate --finish`` runs last: they remove attributes and keys that no code reads."""

    def back_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Return the tasks that revert the operation."""

    def undo_tasks(self, before: Snapshot, after: Snapshot) -> Sequence[Task]:
        """Return the tasks that revert the operation while code still reads the form from before it."""

    def stays_open(self, before: Snapshot, after: Snapshot) -> bool:
        """Return whether ``migrate --finish`` must complete the operation."""

    def left_to_do(self, app_label: str) -> str:
        """Return a sentence about another command that the user has to run, or an empty string."""

    def difference(self, before: Snapshot, after: Snapshot, labels: tuple[str, str]) -> Difference:
        """Return how the recorded form changes."""

    def indexes(self) -> Sequence[str]:
        """Return the indexes that the table must have before the operation starts."""


@dataclass(frozen=True)
class Step:
    """One operation of a migration, with the snapshots before and after it."""

    operation: Operation
    app_label: str
    before: Snapshot
    after: Snapshot

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

    @property
    def difference(self) -> Difference:
        """The change of the form that the table records."""
        return self.operation.difference(self.before, self.after, (self.label_before, self.label))

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        """The tasks of ``migrate``."""
        return tuple(self.operation.open_tasks(self.before, self.after))

    @property
    def finish_tasks(self) -> tuple[Task, ...]:
        """The tasks that ``migrate --finish`` runs before it records the change as complete."""
        return tuple(self.operation.finish_tasks(self.before, self.after))

    @property
    def drop_tasks(self) -> tuple[Task, ...]:
        """The tasks that ``migrate --finish`` runs after every process has read that the change is complete."""
        return tuple(self.operation.drop_tasks(self.before, self.after))

    @property
    def counting_tasks(self) -> tuple[Task, ...]:
        """The tasks that count. They run after all open changes are backfilled, because counting queries by keys."""
        return count_tasks(self.before, self.after)

    @property
    def counts(self) -> bool:
        """Whether the operation adds a count."""
        return has_new_counts(self.before, self.after)

    @property
    def stays_open(self) -> bool:
        """Whether ``migrate --finish`` must complete the operation."""
        return self.counts or self.operation.stays_open(self.before, self.after)

    def change(self) -> OpenChange:
        """Return the record that the table keeps while the change is open."""
        migration, number = _operation_id(self.operation)
        parameters = {"number": str(number), "label": self.operation.describe()}
        return OpenChange(type(self.operation).__name__, f"{self.app_label}.{migration}", parameters)

    def passes(self, phase: Phase, tasks: Iterable[Task], *, first: int = 0) -> list[Work]:
        """Return one pass over the table for each task."""
        migration, number = _operation_id(self.operation)
        label, mark = (
            self.operation.describe(),
            digest_of(self.label, type(self.operation).__name__, self.before, self.after),
        )
        return [
            Work(self.app_label, migration, number, phase, label, task, step=step, mark=mark)
            for step, task in enumerate(tasks, start=first)
        ]


def _operation_id(operation: Operation) -> tuple[str, int]:
    """Return the name of the operation's migration, and the operation's index there."""
    migration = migrate_run.current_run().migration
    for number, each in enumerate(() if migration is None else migration.operations):
        if each is operation:
            return migration.name, number
    return UNNAMED_MIGRATION, 0


def is_responsible(alias: str) -> bool:
    """Return whether migrations of this database change items: our engine's first database, else the default one."""
    of_ours = [each for each in connections.settings if uses_engine(each)]
    return alias == (of_ours[0] if of_ours else DEFAULT_DB_ALIAS)


def forwards(step: Step, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Start a change, or complete it if it does not have to wait for old code."""
    operation, before, after = step.operation, step.before, step.after
    if schema_editor.collect_sql:
        print_requests(step, schema_editor.collected_sql)
        return
    if not is_responsible(schema_editor.connection.alias):
        return
    if is_recorded(step):
        return
    if is_fresh(step):
        _record_form(step, lambda form: form_of(after, step.label, is_new=True), before.item_type, after.item_type)
        return
    _refuse_older_items(step)
    ensure_indexes(step.table, operation.indexes(), report=lambda found: migrate_run.current_run().say(f"    {found}"))
    if not step.stays_open:
        _run_tasks(step, "open", step.open_tasks)
        _record_form(step, step.difference.finished_form)
        _report_open_changes(step)
        return
    change = step.change()
    _record_form(step, lambda form: step.difference.opened_form(form, change))
    _run_tasks(step, "open", step.open_tasks)
    _report_open_changes(step)


def backwards(step: Step, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Revert a change, whether it is finished or still open. Old code may run again afterwards."""
    tasks = step.operation.back_tasks(step.before, step.after)
    if schema_editor.collect_sql:
        migrate_run.print_tasks("back", tasks, schema_editor.collected_sql)
        return
    if not is_responsible(schema_editor.connection.alias):
        return
    change = step.change()
    if _is_withheld(step):
        tasks = step.operation.undo_tasks(step.before, step.after)
    back = Difference(step.after, step.before, (step.label, step.label_before))
    if back.leaving:
        _record_form(step, back.ending_form, step.after.item_type)
    _run_tasks(step, "back", tasks)
    _forget_shards(step.table, step.after, step.before)
    _record_form(step, lambda form: back.finished_form(form, change), step.after.item_type, step.before.item_type)
    if has_new_counts(step.after, step.before):
        migrate_run.current_run().say(
            f"    {step.label_before} counts again what nobody has counted meanwhile, or is counted: manage.py "
            "dynamo_rebuild does, with the code that this is for."
        )


def finish(step: Step, change: OpenChange) -> None:
    """Complete a change: convert the remaining items, record the change as complete, and drop the rest.

    New code writes a removed key until this point. The function waits until every process knows about the change before
    it drops anything (``migrate --grace``, in seconds). A change that counts also needs ``finish_counts()``.
    """
    filling, dropping = step.finish_tasks, step.drop_tasks
    leaving = step.difference.leaving
    if leaving:
        _record_form(step, step.difference.ending_form)
        _wait_for_grace(step)
    if not step.difference.is_renamed_in(_recorded_form(step)):
        # Items that are written after the rename is complete may lack the old name.
        _run_tasks(step, "finish", filling)
    if dropping:
        if filling or not leaving:
            _record_form(step, step.difference.complete_form)
            _wait_for_grace(step)
        if step.difference.renamed:
            _record_form(step, step.difference.ending_form)
            _wait_for_grace(step)
        _run_tasks(step, "finish", dropping, first=len(filling))
    if step.counts:
        _record_form(step, step.difference.uncounted_form, step.before.item_type, step.after.item_type)
    else:
        _close(step, change)


def finish_counts(step: Step, change: OpenChange) -> None:
    """Run the counting tasks of a change and end it. All open changes must be backfilled."""
    _run_tasks(step, "finish", step.counting_tasks, first=len(step.finish_tasks) + len(step.drop_tasks))
    _close(step, change)


def _close(step: Step, change: OpenChange) -> None:
    _forget_shards(step.table, step.before, step.after)
    _record_form(
        step, lambda form: step.difference.finished_form(form, change), step.before.item_type, step.after.item_type
    )


def _recorded_form(step: Step) -> StoredForm | None:
    """Return the form that the table has recorded for the model."""
    state = run(knowledge.state_of(step.table))
    return state.forms.get(_recorded_type(state, step, step.before.item_type))


def _is_withheld(step: Step) -> bool:
    """Return whether items may still lack attributes that the change holds back."""
    form, held_back = _recorded_form(step), step.difference.held_back
    return form is not None and bool(held_back) and not set(held_back) <= form.attributes.keys()


def _wait_for_grace(step: Step) -> None:
    this = migrate_run.current_run()
    this.say(f"    {step.operation.describe()}: waiting {this.grace:.0f} s until every process knows.")
    this.wait(this.grace)


def create_model(step: Step, schema_editor: BaseDatabaseSchemaEditor, *, adopt: bool = False) -> None:
    """Record a model in the table, as ``record_model`` does."""
    if not schema_editor.collect_sql:
        record_model(step, schema_editor.connection.alias, adopt=adopt)


def record_model(step: Step, alias: str, *, adopt: bool = False) -> None:
    """Record a model in the table with all its keys, rules and attributes as complete.

    If the table contains items of the model from before migrations, the function adopts them after it has checked a
    sample. Without ``adopt`` it raises ``ConfigurationError`` instead.
    """
    if not is_responsible(alias) or is_recorded(step):
        return
    state = run(knowledge.state_of(step.table))
    if step.after.item_type in state.forms:
        return
    found = evolution_adopt.sample_items(step.table, step.after)
    if found.items:
        if not (adopt or migrate_run.current_run().adopt):
            raise ConfigurationError(
                f"{step.table.name} holds items of type {step.after.item_type} already, which no migration has made. "
                "If they are of this model as the migration has it, run migrate --fake-initial: it looks at samples, "
                "and counts them as made by it."
            )
        evolution_adopt.check_samples(step.table, step.after, found.items, migrate_run.current_run().say)
    elif found.complete:
        migrate_run.current_run().added.add((step.app_label, step.label))
    is_new = found.complete and not found.items
    _record_form(step, lambda form: form_of(step.after, step.label, is_new=is_new))
    source = evolution_adopt.derivation_source(step.after)
    stored = {form.label for form in state.forms.values()} - {label for _, label in migrate_run.current_run().added}
    if source is not None and source.lower() in stored:
        migrate_run.current_run().say(
            f"    It follows from {source}: manage.py dynamo_rebuild {source} writes what is missing."
        )


def _report_open_changes(step: Step) -> None:
    if left := step.operation.left_to_do(step.app_label):
        migrate_run.current_run().say(f"    {left}")


def _refuse_older_items(step: Step) -> None:
    """Raise ``ConfigurationError`` for work on items of which some may have an earlier schema version."""
    name, after = step.operation.model_name, step.after
    if after.oldest_version < after.schema_version and (step.open_tasks or step.finish_tasks):
        raise ConfigurationError(
            f"{step.operation.describe()}: items of {step.label_before} may be of schema versions "
            f"{after.oldest_version} to {after.schema_version}. Nothing was written. Write "
            f"{operation_text(name, after.schema_version)} before it."
        )


def forget_model(step: Step, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove a model from the state of the table."""
    if schema_editor.collect_sql or not is_responsible(schema_editor.connection.alias):
        return
    item_type = step.before.item_type
    knowledge.change(step.table, lambda state: state.with_form(item_type, None))


def is_recorded(step: Step) -> bool:
    """Return whether the table has recorded the migration as applied, although a new SQL database has not."""
    migration, recorded = migrate_run.current_run().migration, migrate_run.current_run().recorded
    if migration is None or not recorded:
        return False
    names = migration.replaces or [(migration.app_label, migration.name)]
    return all(name in recorded for name in names)


def is_fresh(step: Step) -> bool:
    """Return whether this run added the model to a table without its items, so that nothing has to be converted."""
    added = migrate_run.current_run().added
    fresh = (step.app_label, step.label_before) in added
    if fresh:
        added.add((step.app_label, step.label))
    return fresh


def _run_tasks(step: Step, phase: Phase, tasks: Sequence[Task], *, first: int = 0) -> None:
    this = migrate_run.current_run()
    options = replace(this.options, progress=this.tell)
    for work in step.passes(phase, tasks, first=first):
        this.begin(step.table)
        this.say(f"    {run_work(work, step.table, options)}")


def _record_form(
    step: Step, work: Callable[[StoredForm], StoredForm], item_type: str | None = None, new_type: str | None = None
) -> None:
    """Change the form that the table records for the model. A model without a form counts as complete."""
    given = item_type or step.before.item_type

    def changed(state: TableState) -> TableState:
        name = _recorded_type(state, step, given)
        form = state.forms.get(name) or form_of(step.before, step.label_before)
        target = name if new_type is None or name != given else new_type
        without = state if target == name else state.with_form(name, None)
        return without.with_form(target, work(form))

    knowledge.change(step.table, changed)


def _recorded_type(state: TableState, step: Step, item_type: str) -> str:
    """Return the item type under which the table records the model's form: the old type while its items move."""
    labels = {step.label, step.label_before}
    found = (name for name, form in state.forms.items() if form.label in labels)
    return item_type if item_type in state.forms else next(found, item_type)


def print_requests(step: Step, lines: list[str]) -> None:
    """Write the requests of a change for ``sqlmigrate``: what each pass reads, and when."""
    migrate_run.print_tasks("migrate", step.open_tasks, lines)
    migrate_run.print_tasks("migrate --finish", step.finish_tasks, lines)
    migrate_run.print_tasks("migrate --finish, at last", step.drop_tasks, lines)
    if step.counts:
        lines.append("-- migrate --finish, last: Scan, and for each with the number two Queries, two UpdateItems")


def _forget_shards(table: Table, before: Snapshot, after: Snapshot) -> None:
    """Remove the shard schedule of a model whose items are all in one partition again."""
    if before.is_sharded and not after.is_sharded:
        knowledge.change(table, lambda state: schedules.without_schedule(state, before.item_type))


# Change the number of a model's shards: the table records it for a future time.
#
# Items are not changed. A recorded number is never removed, because existing items are divided by it.


def sharded_model(snapshot: Snapshot, label: str) -> Divided:
    """Return a sharded model as a migration describes it; raise ``ConfigurationError`` if it has no sharded key."""
    sharding = next((each.sharding for each in snapshot.access_keys.values() if each.sharding is not None), None)
    if sharding is None:
        raise ConfigurationError(
            f"{label} has no sharded key in the migrations before ChangeShards: declare models.Shards in its class "
            "Keys, and let manage.py makemigrations write that first."
        )
    attribute, at = (snapshot.attributes[name].stored for name in (sharding.attribute, sharding.at))
    return Divided(label, snapshot.item_type, attribute, at, snapshot.access_keys["primary"].partition, sharding)


def change_shards(step: Step, schema_editor: BaseDatabaseSchemaEditor, shards: int, since: datetime | None) -> None:
    """Record the number of shards, unless the model has it or will have it.

    Sends a GetItem, and the requests of ``manage.py dynamo_shards`` if the number changes.
    """
    label = f"{step.app_label}.{step.operation.name_after()}"
    divided = sharded_model(step.after, label)
    if schema_editor.collect_sql:
        schema_editor.collected_sql.append(f"-- migrate: GetItem and PutItem of what {step.table.name} says of shards")
        return
    if not is_responsible(schema_editor.connection.alias) or is_recorded(step):
        return
    _report_shards(label, _recorded_schedule(step, divided, shards, since))


def _recorded_schedule(step: Step, divided: Divided, shards: int, since: datetime | None) -> Schedule:
    """Return the schedule after the change: the recorded one if its last entry has this number."""
    table, found = step.table, schedule_in(run(knowledge.state_of(step.table)), divided)
    known = found or Schedule()
    last = known.entries[-1]
    if shard_record.is_same(last, shard_record.entry_of(divided, last.since, shards)):
        return known
    if found is None and not shard_record.has_items(table, divided):
        return shard_record.record_first(table, divided, shards, is_empty=True)
    begins = max(shard_record.earliest_start(), shard_record.earliest_start() if since is None else clock.in_utc(since))
    if is_fresh(step):
        # In a new table, one run records all entries of the past.
        begins = max(begins, datetime.fromtimestamp(last.since + shard_record.MINUTE, tz=UTC))
    return shard_record.grow(table, divided, shards, begins)


def keep_shards(step: Step, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Report that the number of shards stays. Sends a GetItem."""
    label = f"{step.app_label}.{step.operation.name_after()}"
    if schema_editor.collect_sql or not is_responsible(schema_editor.connection.alias):
        return
    found = schedule_in(run(knowledge.state_of(step.table)), sharded_model(step.after, label))
    if found is not None:
        _report_shards(label, found, ", as before: items are divided by it, and no number of shards is taken back")


def _report_shards(label: str, schedule: Schedule, more: str = "") -> None:
    migrate_run.current_run().say(f"    {label}: {schedule}{more}.")
