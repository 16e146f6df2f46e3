"""Rehearse migrations: report their effect on a sample of the current items without writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.db.migrations.executor import MigrationExecutor

from dynamo_single.evolution import drive
from dynamo_single.evolution.backfill import Rehearsal, Sample, SimulatedItems, Task, rehearse
from dynamo_single.evolution.migrate_run import Run
from dynamo_single.evolution.steps import Step
from dynamo_single.exceptions import ConfigurationError, FormNotApplied
from dynamo_single.table.request import Item

#: How many changed items are shown for each task, and how many items that could not be converted.
MAX_CHANGED_SAMPLES: Final = 3
MAX_REFUSED_SAMPLES: Final = 20
#: How many items of the table each task reads by default.
DEFAULT_ITEMS: Final = 10_000


def migration_plan(connection: Any, app_label: str | None, name: str | None) -> list[object]:
    """Return the migrations that would be applied, in order; an empty list if ``name`` reverts migrations.

    Raises ``KeyError`` for an app without migrations and for an unknown migration.
    """
    executor = MigrationExecutor(connection)
    if app_label is not None and app_label not in executor.loader.migrated_apps:
        raise KeyError(app_label)
    targets = executor.loader.graph.leaf_nodes(app_label)
    if app_label and name:
        targets = [(app_label, executor.loader.get_migration_by_prefix(app_label, name).name)]
    return [migration for migration, backwards in executor.migration_plan(targets) if not backwards]


def rehearse_plan(migrations: Iterable[object], this: Run, most: int = DEFAULT_ITEMS) -> None:
    """Report the effect of ``migrate`` for each operation. Each task scans about ``most`` items of the table."""
    for migration in migrations:
        for step in drive.steps_of(drive.migration_loader(), migration).values():
            _print_step(f"{migration}: {step.operation.describe()}", step, step.forward_tasks, this, most)


def rehearse_open(found: Iterable[drive.TableChange], this: Run, most: int = DEFAULT_ITEMS) -> None:
    """Report what is left to do for each open change."""
    for each in found:
        step, migration = drive.step_of(each)
        left = step.phases[each.change.phase :]
        tasks = [task for phase in left for name in phase.passes for task in step.tasks.get(name, ())]
        _print_step(f"{migration}: {step.operation.describe()}, which has begun", step, tasks, this, most)


def _print_step(title: str, step: Step, tasks: Iterable[Task], this: Run, most: int) -> None:
    this.say(f"  {title}")
    imagined: SimulatedItems = {}
    try:
        for task in tasks:
            found = rehearse(
                task,
                step.table,
                sample=MAX_CHANGED_SAMPLES,
                refused=MAX_REFUSED_SAMPLES,
                most=most,
                max_rcu=this.options.max_rcu,
                imagined=imagined,
            )
            for line in _lines(found):
                this.say(f"    {line}")
    except (ConfigurationError, FormNotApplied) as error:
        this.say(f"    This cannot be tried yet. {error}")


def _lines(found: Rehearsal) -> Iterator[str]:
    of_all = "all" if found.complete else "the first"
    read = f"{of_all} {found.scanned:,} of the table were read"
    yield f"{found.changing:,} of {found.matched:,} items would change ({read})."
    for sample in found.samples:
        yield from _changes(sample)
    if found.failing:
        yield f"{found.failing:,} could not be changed:"
    for failure in found.failures:
        yield f"  {failure}"
    if more := found.failing - len(found.failures):
        yield f"  and {more:,} more."


def _changes(sample: Sample) -> Iterator[str]:
    for key, after in sample.after.items():
        before = sample.before.get(key)
        name = " / ".join(key)
        if before is None or after is None:
            yield f"{name}: {'is written' if before is None else 'is deleted'}"
            continue
        changed = [each for each in {**before, **after} if before.get(each) != after.get(each)]
        yield f"{name}: " + ", ".join(
            f"{each} {_value_text(before, each)} -> {_value_text(after, each)}" for each in changed
        )


def _value_text(item: Item, name: str) -> str:
    return repr(next(iter(item[name].values()))) if name in item else "missing"
