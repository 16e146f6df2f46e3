"""Find the open changes in a project's tables, and finish them with the migrations that started them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from dynamo_single import clock
from dynamo_single.backend import migration_record
from dynamo_single.backend.router import uses_engine
from dynamo_single.evolution import apply, backfill
from dynamo_single.evolution.migrate_run import Run
from dynamo_single.evolution.operations.models import AddModel
from dynamo_single.evolution.state import SnapshotState
from dynamo_single.exceptions import ConfigurationError, DynamoSingleError, TableNotFound
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import OpenChange
from dynamo_single.table.flow import run
from dynamo_single.table.table import get_table


@dataclass(frozen=True)
class TableChange:
    """An open change, and the table that records it."""

    alias: str
    item_type: str
    change: OpenChange


def unapplied_migrations(alias: str) -> list[str]:
    """Return the migrations with operations on items that a database has not recorded as applied.

    Sends one query to Django's migration record: SQL, or a DynamoDB Query in a project without SQL, which sends no
    request if no migration has such operations.
    """
    executor = MigrationExecutor(connections[alias])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [
        str(migration)
        for migration, backwards in plan
        if migration_record.has_items_to_change(migration) and not backwards
    ]


def migration_loader() -> MigrationLoader:
    """Return the loader of the migrations on disk, including squashed ones: they may have started open changes."""
    return MigrationLoader(None, ignore_no_migrations=True, replace_migrations=False)


def open_changes() -> list[TableChange]:
    """Return the open changes in the order in which they started.

    Sends a GetItem for each table that has models with migrations, and no request if no migration has operations on
    items.
    """
    graph = migration_loader()
    if not any(map(migration_record.has_items_to_change, graph.disk_migrations.values())):
        return []
    states = graph.project_state().models.values()
    found: list[TableChange] = []
    for alias in sorted({state.snapshot.alias for state in states if isinstance(state, SnapshotState)}):
        with suppress(TableNotFound):
            state = run(knowledge.state_of(get_table(alias)))
            for item_type, form in state.forms.items():
                found += (TableChange(alias, item_type, change) for change in form.opened)
    return sorted(found, key=lambda each: (each.change.migration, int(each.change.parameters["number"])))


def step_of(found: TableChange) -> tuple[apply.Step, Any]:
    """Return the operation that started a change, with its snapshots, and its migration.

    Raises ``ConfigurationError`` if the migration is no longer on disk.
    """
    app_label, _, name = found.change.migration.partition(".")
    graph = migration_loader()
    migration = graph.disk_migrations.get((app_label, name))
    number = int(found.change.parameters["number"])
    operations = [] if migration is None else migration.operations
    if number >= len(operations) or type(operations[number]).__name__ != found.change.kind:
        raise ConfigurationError(
            f"{found.change.migration} has begun {found.change.parameters['label']!r}, and there is no such migration "
            "with that operation any more. Put its file back, finish, and remove it then."
        )
    return steps_of(graph, migration)[number], migration


def steps_of(graph: MigrationLoader, migration: Any) -> dict[int, apply.Step]:
    """Return a migration's operations on items by their numbers, each with the snapshots before and after it."""
    state = graph.project_state((migration.app_label, migration.name), at_end=False)
    found: dict[int, apply.Step] = {}
    for number, operation in enumerate(migration.operations):
        before = state.models.get((migration.app_label, getattr(operation, "model_name", "").lower()))
        operation.state_forwards(migration.app_label, state)
        if getattr(operation, "changes_items", False) and isinstance(before, SnapshotState):
            after = state.models.get((migration.app_label, operation.name_after().lower()))
            if isinstance(after, SnapshotState):  # RemoveModel leaves no state, and does not change items
                found[number] = apply.Step(operation, migration.app_label, before.snapshot, after.snapshot)
    return found


def finish(found: TableChange, this: Run) -> None:
    """Complete a change, except for its counts."""
    step, migration = step_of(found)
    this.migration = migration
    apply.finish(step, found.change)
    if not step.counts:
        backfill.delete_checkpoints(get_table(found.alias), migration.app_label, migration.name)


def finish_counts(found: TableChange, this: Run) -> None:
    """Run the counts of a change. No other change that they query may be open."""
    step, migration = step_of(found)
    if step.counts:
        this.migration = migration
        apply.finish_counts(step, found.change)
        backfill.delete_checkpoints(get_table(found.alias), migration.app_label, migration.name)


def adopt_models(migration: Any, alias: str) -> None:
    """Record the models of a migration that Django considers applied because their SQL tables exist.

    ``migrate --fake-initial`` records such a migration without running its operations. This function checks a sample of
    the items as usual. If they do not match the migration, it removes Django's record and raises the error.
    """
    try:
        for operation in migration.operations:
            if isinstance(operation, AddModel):
                step = apply.Step(operation, migration.app_label, operation.snapshot, operation.snapshot)
                apply.record_model(step, alias, adopt=True)
    except DynamoSingleError:
        MigrationRecorder(connections[alias]).record_unapplied(migration.app_label, migration.name)
        raise


def record_migration(migration: Any, this: Run, *, is_applied: bool) -> None:
    """Delete the checkpoints of a migration. In a project with SQL, also record in the table whether it is applied."""
    app_label, name = migration.app_label, migration.name
    states = migration_loader().project_state((app_label, name)).models.values()
    for alias in {state.snapshot.alias for state in states if isinstance(state, SnapshotState)}:
        backfill.delete_checkpoints(get_table(alias), app_label, name)
    if any(map(uses_engine, connections.settings)):
        return  # Django's own recorder has already stored it
    if is_applied:
        migration_record.record((app_label, name), clock.now())
    else:
        migration_record.forget([(app_label, name)])
