"""Change the number of a model's shards: the table records it for a future time.

Items are not changed. A recorded number is never removed, because existing items are divided by it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dynamo_single import clock
from dynamo_single.evolution import apply
from dynamo_single.evolution import migrate_run as runs
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.rollout.schedules import Divided, schedule_in
from dynamo_single.orm.schema.keys.shards import Schedule
from dynamo_single.table.flow import run

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


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


def forwards(step: apply.Step, schema_editor: BaseDatabaseSchemaEditor, shards: int, since: datetime | None) -> None:
    """Record the number of shards, unless the model has it or will have it.

    Sends a GetItem, and the requests of ``manage.py dynamo_shards`` if the number changes.
    """
    label = f"{step.app_label}.{step.operation.name_after()}"
    divided = sharded_model(step.after, label)
    if schema_editor.collect_sql:
        schema_editor.collected_sql.append(f"-- migrate: GetItem and PutItem of what {step.table.name} says of shards")
        return
    if not apply.is_responsible(schema_editor.connection.alias) or apply.is_recorded(step):
        return
    _report(label, _recorded_schedule(step, divided, shards, since))


def _recorded_schedule(step: apply.Step, divided: Divided, shards: int, since: datetime | None) -> Schedule:
    """Return the schedule after the change: the recorded one if its last entry has this number."""
    table, found = step.table, schedule_in(run(knowledge.state_of(step.table)), divided)
    known = found or Schedule()
    last = known.entries[-1]
    if shard_record.is_same(last, shard_record.entry_of(divided, last.since, shards)):
        return known
    if found is None and not shard_record.has_items(table, divided):
        return shard_record.begin_with(table, divided, shards, is_empty=True)
    begins = max(shard_record.earliest(), shard_record.earliest() if since is None else clock.in_utc(since))
    if apply.is_fresh(step):
        # In a new table, one run records all entries of the past.
        begins = max(begins, datetime.fromtimestamp(last.since + shard_record.MINUTE, tz=UTC))
    return shard_record.grow(table, divided, shards, begins)


def backwards(step: apply.Step, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Report that the number of shards stays. Sends a GetItem."""
    label = f"{step.app_label}.{step.operation.name_after()}"
    if schema_editor.collect_sql or not apply.is_responsible(schema_editor.connection.alias):
        return
    found = schedule_in(run(knowledge.state_of(step.table)), sharded_model(step.after, label))
    if found is not None:
        _report(label, found, ", as before: items are divided by it, and no number of shards is taken back")


def _report(label: str, schedule: Schedule, more: str = "") -> None:
    runs.current_run().say(f"    {label}: {schedule}{more}.")
