"""Read and write the migrations that a database has recorded as applied."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.backend import migration_record
from dynamo_single.backend.router import uses_engine
from dynamo_single.evolution import apply, backfill
from dynamo_single.evolution.drive import aliases, migration_loader
from dynamo_single.evolution.migrate_run import Run
from dynamo_single.evolution.operations.models import AddModel
from dynamo_single.evolution.state import SnapshotState
from dynamo_single.evolution.steps import Step
from dynamo_single.exceptions import DynamoSingleError, TableNotFound
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import TableState
from dynamo_single.table.table import get_table


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


def adopt_models(migration: Any, alias: str) -> None:
    """Record the models of a migration that Django considers applied because their SQL tables exist.

    ``migrate --fake-initial`` records such a migration without running its operations. This function checks a sample of
    the items as usual. If they do not match the migration, it removes Django's record and raises the error.
    """
    try:
        for operation in migration.operations:
            if isinstance(operation, AddModel):
                step = Step(operation, migration.app_label, operation.snapshot, operation.snapshot)
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


def record_squashed() -> None:
    """Record in each table which squashed migrations replace the ones that its forms name.

    Code with only the squashed migration can then follow the table, even after you remove ``replaces``. Sends a GetItem
    for each table, and a PutItem for each change. Without squashed migrations on disk, no request is sent.
    """
    graph = migration_loader()
    squashed = {
        f"{app_label}.{name}": f"{each.app_label}.{each.name}"
        for each in graph.disk_migrations.values()
        for app_label, name in each.replaces
    }
    for alias in aliases(graph) if squashed else ():
        with suppress(TableNotFound):
            knowledge.change(get_table(alias), lambda state: _with_squashed(state, squashed))


def _with_squashed(state: TableState, squashed: Mapping[str, str]) -> TableState:
    if state.former:
        return state  # an earlier release names no migrations that code needs
    for item_type, form in state.forms.items():
        named = {*form.required.values(), *form.changed.values(), *form.squashed.values()} & squashed.keys()
        found = {**form.squashed, **{name: squashed[name] for name in named}}
        if found != form.squashed:
            state = state.with_form(item_type, replace(form, squashed=found))
    return state
