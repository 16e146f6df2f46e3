"""Mixins for ``makemigrations`` and ``migrate``, also for the commands of a project or of another app.

Write ``class Command(MakemigrationsMixin, other.Command)`` in an app that comes before ``dynamo_single`` in
``INSTALLED_APPS``. Both commands have a documented ``autodetector`` attribute since Django 5.2:
https://docs.djangoproject.com/en/5.2/ref/django-admin/#overriding-commands
"""

from __future__ import annotations

import re
import sys
from argparse import SUPPRESS
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.operations import RunPython, RunSQL

from dynamo_single.backend import migration_record
from dynamo_single.backend.router import uses_engine
from dynamo_single.evolution import applied, drive, rehearse
from dynamo_single.evolution.apply import is_responsible
from dynamo_single.evolution.autodetector import Autodetector
from dynamo_single.evolution.backfill import Options
from dynamo_single.evolution.migrate_run import Run, use_run
from dynamo_single.evolution.phases import DECLARE, effect_on_code
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry

if TYPE_CHECKING:
    from argparse import ArgumentParser

#: How Django's errors name a model that a state lacks: one for all references, one for the column of a reference.
_UNRESOLVED = re.compile(r"(?:lazy reference to|Related model) '([^']+)'")
#: The directory of this package.
_PACKAGE = Path(__file__).parent.parent


@contextmanager
def _command_errors() -> Iterator[None]:
    """Raise a ``CommandError`` with the message of any error of this app."""
    try:
        yield
    except CommandError:  # as some errors of this app are
        raise
    except DynamoSingleError as error:
        raise CommandError(str(error)) from error


class AutodetectorMixin:
    """Let a command detect changes of DynamoDB models in addition to the changes that its own autodetector finds."""

    autodetector: type[MigrationAutodetector] = Autodetector

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Combine our autodetector with the autodetector that the command inherits."""
        super().__init_subclass__(**kwargs)
        found = (vars(base).get("autodetector") for base in cls.__mro__ if not issubclass(base, AutodetectorMixin))
        theirs = next((each for each in found if each is not None), MigrationAutodetector)
        if "autodetector" not in vars(cls):
            cls.autodetector = _combined_autodetector(theirs)

    def handle(self, *args: Any, **options: Any) -> Any:
        """Run the command. It exits with status 1 and the message of any error that this app raises."""
        command: Any = super()
        # The comparison needs the declared names rather than the names that this process uses during a rename.
        knowledge.forget()
        with _command_errors():
            try:
                return command.handle(*args, **options)
            except DynamoSingleError:
                raise
            except ValueError as error:
                if missing := _missing_models(str(error)):
                    raise CommandError(f"{error}\n{missing}") from error
                raise


def _missing_models(said: str) -> str:
    """Explain Django's error about DynamoDB models that SQL models refer to but no migration creates.

    In an app with migrations, Django finds only the models that they create. Returns an empty string for any other
    error.
    """
    labels = {label.lower() for label in _UNRESOLVED.findall(said)}
    found = [model._meta.label for model in registry.all_models() if model._meta.label_lower in labels]
    apps_of_them = sorted({label.partition(".")[0] for label in found})
    if not found:
        return ""
    return (
        f"{', '.join(found)} is stored in DynamoDB, but the migrations of its app do not add it (AddModel). Run "
        f"manage.py makemigrations {' '.join(apps_of_them)}, and add its migration to the dependencies."
    )


@cache
def _combined_autodetector(theirs: type[MigrationAutodetector]) -> type[MigrationAutodetector]:
    """Return one class per autodetector: Django's check ``commands.E001`` requires the same class in both commands."""
    if issubclass(theirs, Autodetector):
        return theirs
    return Autodetector if theirs is MigrationAutodetector else type("Autodetector", (Autodetector, theirs), {})


class MakemigrationsMixin(AutodetectorMixin):
    """``makemigrations`` for models in DynamoDB and in SQL."""

    def handle(self, *app_labels: str, **options: Any) -> Any:
        """Write the migrations; for models of this package, only if ``MIGRATION_MODULES`` names a module."""
        this: Any = self
        left_out = [each for each in app_labels if each not in settings.MIGRATION_MODULES and _is_shipped(each)]
        for label in left_out:
            message = (
                f"The migrations of {label} would be written into the installed package. Name a module of the "
                f"project for them: MIGRATION_MODULES = {{{label!r}: 'project.migrations.{label}'}}."
            )
            if len(left_out) == len(app_labels):
                raise CommandError(message)
            this.stderr.write(f"No migrations are written for {label}. {message}")
        return super().handle(*(each for each in app_labels if each not in left_out), **options)

    def write_migration_files(self, changes: dict[str, list[Any]], *args: object, **kwargs: object) -> None:
        """Write the files, and print how each change affects running code, and alternatives."""
        command: Any = super()
        this: Any = self
        lines = _effects([migration for some in changes.values() for migration in some])
        command.write_migration_files(changes, *args, **kwargs)
        for line in lines if this.verbosity >= 1 else ():
            this.log(line)


def _effects(migrations: Sequence[Any]) -> list[str]:
    """Return how each change of stored items affects running code, and an alternative if there is one."""
    if not any(map(migration_record.has_items_to_change, migrations)):
        return []
    state, lines = drive.migration_loader().project_state(), []
    for migration in migrations:
        added: set[str] = set()
        for step in drive.steps_in(state, migration).values():
            names = {each.stored for each in step.after.attributes.values()}
            added |= names - {each.stored for each in step.before.attributes.values()}
            effect = effect_on_code(step.phases)
            lacking = added & {name for key in step.new_keys for name in key.stored.values()}
            if effect == "online" and lacking and not step.operation.renamed(step.before, step.after):
                effect = f"unavailable to old code, which does not have {', '.join(sorted(lacking))}"
            if step.phases is DECLARE:
                continue
            lines.append(f"  {step.operation.describe()}: {effect}.")
            lines += [f"    {hint}" for hint in [step.operation.hint(step.before, step.after)] if hint]
    return lines


def _not_found(app_label: str | None, migration_name: str | None) -> str:
    """Return the message of Django's ``migrate`` about an unknown app or migration."""
    if app_label not in apps.app_configs:
        return f"No installed app with label '{app_label}'."
    if migration_name is None:
        return f"App '{app_label}' does not have migrations."
    return f"Cannot find a migration matching '{migration_name}' from app '{app_label}'."


def _is_shipped(label: str) -> bool:
    """Return whether an app is part of this package, which contains no migration files: a project writes them."""
    found = apps.app_configs.get(label)
    return found is not None and Path(found.path).is_relative_to(_PACKAGE)


def _has_other_work(migration: Any) -> bool:
    """Return whether a migration runs Python code or SQL of the project."""
    return any(isinstance(each, RunPython | RunSQL) for each in migration.operations)


class MigrateMixin(AutodetectorMixin):
    """``migrate`` for models in DynamoDB and in SQL."""

    stdout: Any
    _is_line_open = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options for work on items."""
        command: Any = super()
        command.add_arguments(parser)
        group = parser.add_argument_group("items in DynamoDB")
        group.add_argument("--finish", action="store_true", help=SUPPRESS)
        group.add_argument(
            "--no-wait",
            action="store_true",
            help="do only the work that does not wait for other processes, and list the remaining changes",
        )
        group.add_argument(
            "--force",
            action="store_true",
            help="reject processes that cannot follow, and processes of an earlier release; does not shorten any wait",
        )
        group.add_argument(
            "--rehearse",
            action="store_true",
            help="do not write; show how some of the current items would change",
        )
        group.add_argument(
            "--items",
            type=int,
            default=rehearse.DEFAULT_ITEMS,
            help="with --rehearse, the number of items on which each operation is tried (%(default)s)",
        )
        group.add_argument(
            "--segments", type=int, default=4, help="parts of the table to read in parallel (%(default)s)"
        )
        group.add_argument("--max-rcu", type=float, help="maximum read units per second")
        group.add_argument("--max-wcu", type=float, help="maximum write units per second")

    def execute(self, *args: object, **options: object) -> Any:
        """Run the checks and the command. The checks need not report migrations that are about to be applied."""
        command: Any = super()
        with use_run(Run()), migration_record.reading_files_once():
            return command.execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> Any:
        """Announce the migrations, and apply the open changes as far as running processes can follow."""
        if options.get("finish"):
            raise CommandError(
                "The option --finish was removed: manage.py migrate completes a change by itself, before or after the "
                "deployment. Run it without the option."
            )
        with _command_errors():
            self.run, self.database = self._run(options), options["database"]
        with use_run(self.run), _command_errors():
            if options.get("rehearse"):
                return self._rehearse(options)
            if options.get("check_unapplied"):
                answer = super().handle(*args, **options)
                if is_responsible(options["database"]) and (left := drive.open_changes()):
                    self._list(left)
                    sys.exit(1)
                return answer
            answer = super().handle(*args, **options)
            if not is_responsible(options["database"]):
                return answer
            if options.get("plan"):
                self._list(drive.open_changes())
                return answer
            self._carry_out()
            return answer

    def _carry_out(self) -> None:
        """Apply the open changes in all tables."""
        applied.record_squashed()
        left = drive.open_changes()
        if not left:
            return
        self.run.say("Changing items:")
        for each in left:
            self.run.say(f"  {each}")
        for alias in dict.fromkeys(each.alias for each in left):
            drive.drive(alias, self.run)
        self._list(drive.open_changes())

    def _list(self, left: Sequence[drive.TableChange]) -> None:
        if left:
            self.run.say("Left to do; run migrate again, after the deployment if processes cannot follow:")
            for each in left:
                self.run.say(f"  {each}")

    def _rehearse(self, options: dict[str, Any]) -> None:
        most = options.get("items", rehearse.DEFAULT_ITEMS)
        if most < 1:
            raise CommandError("--items must be an integer of at least 1.")
        self.run.say("Changes that each operation alone would make to the current items:")
        try:
            plan = rehearse.migration_plan(
                connections[options["database"]], options.get("app_label"), options.get("migration_name")
            )
            rehearse.rehearse_plan(plan, self.run, most)
            rehearse.rehearse_open(drive.open_changes(), self.run, most)
        except KeyError as error:
            # Django's migrate reports an unknown migration with the same message.
            raise CommandError(_not_found(options.get("app_label"), options.get("migration_name"))) from error

    def _run(self, options: dict[str, Any]) -> Run:
        work = Options(
            segments=options.get("segments", 4),
            max_rcu=options.get("max_rcu"),
            max_wcu=options.get("max_wcu"),
        )
        loud = options["verbosity"] >= 1
        return Run(
            work,
            adopt=options.get("fake_initial", False),
            waits=not options.get("no_wait", False),
            forced=options.get("force", False),
            say=self._say if loud else lambda line: None,
            recorded=() if uses_engine(options["database"]) else migration_record.recorded_if_any(),
        )

    def _say(self, line: str) -> None:
        if self._is_line_open:  # after Django's "Applying ..."
            self.stdout.write("")
            self._is_line_open = False
        self.stdout.write(line)

    def migration_progress_callback(self, action: str, migration: object = None, fake: bool = False) -> None:
        """Store the current migration, and delete its checkpoints once it is applied or reverted."""
        command: Any = super()
        if action.endswith("_start"):
            if action == "apply_start" and not fake and is_responsible(self.database) and _has_other_work(migration):
                # Code of the project may depend on the items after earlier operations.
                for alias in dict.fromkeys(step.after.alias for step in self.run.announced.values()):
                    drive.drive(alias, self.run)
            self.run.migration = migration
        command.migration_progress_callback(action, migration, fake)
        self._is_line_open = action.endswith("apply_start")
        is_over = action in ("apply_success", "unapply_success")
        # A migration of another database did not change items, and the responsible database must still find it
        # unapplied.
        if is_over and is_responsible(self.database) and migration_record.has_items_to_change(migration):
            if fake and self.run.adopt:
                self.run.say("")
                applied.adopt_models(migration, self.database)
            applied.record_migration(migration, self.run, is_applied=action == "apply_success")
