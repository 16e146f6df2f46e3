"""Apply an operation to a table: record the open change, and convert the items.

``forwards`` announces a change, ``drive`` carries it out, and ``backwards`` reverts it. Each can be interrupted at any
point and run again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import DEFAULT_DB_ALIAS, connections
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.backend.router import uses_engine
from dynamo_single.evolution import adopt as evolution_adopt
from dynamo_single.evolution import drive, migrate_run
from dynamo_single.evolution.backfill import Task, ensure_indexes
from dynamo_single.evolution.backfill.checkpoints import Segment
from dynamo_single.evolution.backfill.run import scan
from dynamo_single.evolution.forms import form_of, is_same, with_change
from dynamo_single.evolution.phases import DECLARE, PAUSE
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.steps import Step, has_new_counts
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.rollout.schedules import Divided, schedule_in
from dynamo_single.orm.rollout.states import StoredForm, TableState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Schedule
from dynamo_single.orm.schema.upgrades import operation_text
from dynamo_single.table.flow import run

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def is_responsible(alias: str) -> bool:
    """Return whether migrations of this database change items: our engine's first database, else the default one."""
    of_ours = [each for each in connections.settings if uses_engine(each)]
    return alias == (of_ours[0] if of_ours else DEFAULT_DB_ALIAS)


def forwards(step: Step, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Announce a change in the table's state, or record it if no item changes: a GetItem and a PutItem.

    ``drive()`` carries it out: ``migrate`` calls it once all migrations are announced, so that their changes move
    together, and before a migration with operations of other kinds. Outside of the command it is called here.
    """
    if schema_editor.collect_sql:
        print_requests(step, schema_editor.collected_sql)
        return
    if not is_responsible(schema_editor.connection.alias) or is_recorded(step):
        return
    this = migrate_run.current_run()
    if is_fresh(step):
        _record(step, lambda form: form_of(step.after, step.label, is_new=True))
        return
    _refuse_older_items(step)
    _refuse_shared(step)
    _end_rename_from(step)
    ensure_indexes(step.table, step.operation.indexes(), report=lambda found: this.say(f"    {found}"))
    if step.phases is DECLARE:
        _record(step, lambda form: step.form_change.ended(step.form_change.in_phase(form, step.form_change.last)))
    else:
        change = step.change()
        this.announced[change.migration, change.number] = step

        def announced(form: StoredForm) -> StoredForm:
            # The form may lack a part because an earlier change is open.
            is_over = not form.opened and step.form_change.is_over(form)
            if is_over or any(is_same(each, change) for each in form.opened):
                return form
            return with_change(step.form_change.in_phase(form, 0), change)

        _record(step, announced, is_open=True)
    if left := step.operation.left_to_do(step.app_label):
        this.say(f"    {left}")
    if not migrate_run.is_running():
        drive.drive(step.after.alias, this)


def backwards(step: Step, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Revert a change, whether it has ended or is still open, by the same phases in the other direction."""
    if schema_editor.collect_sql:
        tasks = [task for phase in reversed(step.phases) for name in phase.back for task in step.tasks.get(name, ())]
        _print_tasks("back", tasks, schema_editor.collected_sql)
        return
    if not is_responsible(schema_editor.connection.alias):
        return
    this, change = migrate_run.current_run(), step.change(len(step.phases) - 1)
    if step.phases is DECLARE:
        _record(step, lambda form: step.form_change.ended(step.form_change.in_phase(form, 0), is_reverted=True), True)
        return
    _refuse_shared(step)
    this.announced[change.migration, change.number] = step

    def reverted(form: StoredForm) -> StoredForm:
        known = next((each for each in form.opened if is_same(each, change)), None)
        back = replace(known or change, is_reverted=True)
        if known is None and step.form_change.is_over(form, is_reverted=True):
            return form
        if known is None:
            form = step.form_change.in_phase(form, step.form_change.last)
        return with_change(form, back)

    _record(step, reverted, True, is_open=True)
    if not drive.drive(step.after.alias, this, reverting=change):
        raise ConfigurationError(
            f"{change.migration}: {change.parameters['label']!r} is not reverted yet, and counts as applied until it "
            "is. The work so far is kept. Repeat the command without --no-wait."
        )
    if step.phases is not PAUSE and has_new_counts(step.after, step.before):  # in a pause the counts are moved
        this.say(
            f"    {step.label_before} counts or is counted, and the counts were not updated in the meantime. Run "
            "manage.py dynamo_rebuild with the former code."
        )


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
    _end_rename_from(step)
    found = evolution_adopt.sample_items(step.table, step.after)
    if found.items:
        if not (adopt or migrate_run.current_run().adopt):
            raise ConfigurationError(
                f"The table {step.table.name} already contains items of type {step.after.item_type}, and no migration "
                "has recorded them. If their layout matches this migration, run migrate --fake-initial: it checks a "
                "sample of them and records the migration as applied."
            )
        evolution_adopt.check_samples(step.table, step.after, found.items, migrate_run.current_run().say)
    elif found.complete:
        migrate_run.current_run().added.add((step.app_label, step.label))
    is_new = found.complete and not found.items
    _record(step, lambda form: form_of(step.after, step.label, is_new=is_new), item_type=step.after.item_type)
    source = evolution_adopt.derivation_source(step.after)
    stored = {form.label for form in state.forms.values()} - {label for _, label in migrate_run.current_run().added}
    if source is not None and source.lower() in stored:
        migrate_run.current_run().say(
            f"    It is derived from {source}: manage.py dynamo_rebuild {source} writes its missing items."
        )


def _end_rename_from(step: Step) -> None:
    """Carry out the rename of the model that had the label of this one, before this model may store the label.

    Sends a GetItem, and the requests of ``drive()`` if there is such a rename. Raises ``ConfigurationError`` if it has
    to wait.
    """
    alias, this = step.after.alias, migrate_run.current_run()
    opened = drive.changes_in(alias, run(knowledge.state_of(step.table)))
    former = [each for each in opened if drive.known_step(each, this).renames_from(step.label)]
    if former and not drive.drive(alias, this):
        raise ConfigurationError(
            f"Cannot apply {step.operation.describe()!r} yet: {former[0].change.migration} still replaces the label "
            f"{step.label!r} of the model that had it. The work so far is kept. Run migrate again."
        )


def _refuse_older_items(step: Step) -> None:
    """Raise ``ConfigurationError`` for work on items of which some may have an earlier schema version."""
    name, after = step.operation.model_name, step.after
    own = frozenset({after.item_type})
    is_written = step.forward_tasks and step.operation.rewrites(after.alias, own) & own
    if after.oldest_version < after.schema_version and is_written:
        raise ConfigurationError(
            f"{step.operation.describe()}: items of {step.label_before} may be of schema versions "
            f"{after.oldest_version} to {after.schema_version}. Nothing was written. Write "
            f"{operation_text(name, after.schema_version)} before it."
        )


def _refuse_shared(step: Step) -> None:
    """Raise ``ConfigurationError`` for a change of items that another program saves too: it does not follow the state.

    Changes that do not write any items are allowed.
    """
    model = registry.model_of_type(step.after.alias, step.after.item_type)
    own = frozenset({step.after.item_type})
    is_written = step.phases is not DECLARE and step.operation.rewrites(step.after.alias, own) & own
    if is_written and model is not None and model._options.shared:
        raise ConfigurationError(
            f"Cannot apply {step.operation.describe()!r}: {model._meta.label} has Meta.shared, and the other program "
            "does not follow changes of its items. Nothing was written. Remove Meta.shared once that program has "
            "stopped writing, and run migrate again."
        )


def forget_model(step: Step, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Remove a model from the state of the table, once its open changes have ended."""
    if schema_editor.collect_sql or not is_responsible(schema_editor.connection.alias):
        return
    item_type, this = step.before.item_type, migrate_run.current_run()
    this.added.discard((step.app_label, step.label_before))
    form = run(knowledge.state_of(step.table)).forms.get(item_type)
    if form is not None and form.opened:
        drive.drive(step.after.alias, this)

    def forgotten(state: TableState) -> TableState:
        state = drive.taken_over(step.before.alias, state, this)
        return state.with_form(item_type, None) if item_type in state.forms else state

    knowledge.change(step.table, forgotten)


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
        added.remove((step.app_label, step.label_before))
        added.add((step.app_label, step.label))
    return fresh


def _record(
    step: Step,
    work: Callable[[StoredForm], StoredForm],
    is_reverted: bool = False,
    *,
    is_open: bool = False,
    item_type: str = "",
) -> None:
    """Change the form that the table records for the model. A model without a form counts as complete.

    ``item_type`` is that of a new model, whose label another model may have had. Raises ``ConfigurationError`` for the
    first change of a table of an earlier release, unless that is forced.
    """
    before, label = (step.after, step.label) if is_reverted else (step.before, step.label_before)
    this = migrate_run.current_run()

    def changed(state: TableState) -> TableState:
        state = drive.taken_over(step.after.alias, state, this)
        name = item_type or step.recorded_type(state, is_reverted=is_reverted)
        known = state.forms.get(name)
        form = work(known or form_of(before, label))
        if form == known:
            return state
        opened = tuple(replace(each, since=state.revision + 1) if not each.since else each for each in form.opened)
        form = replace(form, opened=opened)
        if is_open:
            return state.with_form(name, form)
        return step.with_ended_form(state, name, form, is_reverted=is_reverted)

    # A change that is reverted in its phase stays there, but late requests of a stopped run must not be executed.
    after = knowledge.change(step.table, changed, moves=is_reverted and is_open)
    if not step.table.replaced:
        # Also by a run without items to change: a process that begins before it is measured has no fence.
        drive.measure_fence(step.table, after, this)


def print_requests(step: Step, lines: list[str]) -> None:
    """Write the requests of a change for ``sqlmigrate``: what each pass reads, and when."""
    for number, phase in enumerate(step.phases):
        for name in phase.passes:
            tasks = step.tasks.get(name, ())
            if name == "count" and tasks:
                lines.append("-- migrate, last: Scan, and for each with the number two Queries, two UpdateItems")
            else:
                _print_tasks(f"migrate, phase {number} ({name})", tasks, lines)


def _print_tasks(when: str, given: Sequence[Task], lines: list[str]) -> None:
    """Append the requests of some passes for ``sqlmigrate``: which items each pass reads, and when."""
    for task in given:
        request = scan(task, Segment(0), 1, migrate_run.current_run().options.page)
        lines.append(f"-- {when}: {request.operation} {json.dumps(dict(request.params), ensure_ascii=False)}")
        lines.append("--   and for each item that is not as it should be a conditional write, or a transaction")


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
        schema_editor.collected_sql.append(
            f"-- migrate: GetItem and PutItem of the shards that {step.table.name} records"
        )
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
    begins = max(
        shard_record.earliest_start(table), shard_record.earliest_start(table) if since is None else clock.in_utc(since)
    )
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
        _report_shards(label, found, " (unchanged: items use this number of shards, so it cannot be reverted)")


def _report_shards(label: str, schedule: Schedule, more: str = "") -> None:
    migrate_run.current_run().say(f"    {label}: {schedule}{more}.")
