"""``manage.py dynamo_import_sql``: import the rows of an SQL database as objects."""

from __future__ import annotations

from contextlib import ExitStack
from io import StringIO
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from django.db import Error, connections

from dynamo_single.backend.router import uses_engine
from dynamo_single.contrib.sql_import import declared, introspected
from dynamo_single.contrib.sql_import.estimate import estimate
from dynamo_single.contrib.sql_import.importing import Importer
from dynamo_single.contrib.sql_import.mapping import Import, Plan, plan
from dynamo_single.contrib.sql_import.report import Report, Tally
from dynamo_single.contrib.sql_import.rows import Converter
from dynamo_single.contrib.sql_import.tables import SourceTable, column_names, table_names
from dynamo_single.costs import counted
from dynamo_single.exceptions import ConfigurationError, DynamoSingleError
from dynamo_single.orm.requests import atomic_block
from dynamo_single.table.batches import Pace

#: The number of rows between two messages about the progress of a table.
PROGRESS: Final = 10_000


class Command(BaseCommand):
    """Imports rows. The exit status is 1 if any row is refused or stored with other values."""

    help = (
        "Writes the rows of an SQL database as objects of the project's models in DynamoDB. The command does not "
        "change existing objects. You can run it again at any time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the database, the module, the maps and how to run."""
        parser.add_argument("--database", required=True, help="the alias of the SQL database in DATABASES")
        parser.add_argument(
            "--from",
            action="append",
            default=[],
            dest="modules",
            metavar="MODULE",
            help="a module of Django models that describe the rows, such as the old models.py; without it, the "
            "command introspects the database",
        )
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            dest="maps",
            metavar="LEFT=RIGHT",
            help="old.Model=app.Model or Model.field=attribute; an empty right side omits the model or field",
        )
        parser.add_argument("--dry-run", action="store_true", help="compare the rows with the table, but do not write")
        parser.add_argument(
            "--check", action="store_true", help="the same, and exit with 1 unless the table contains every row"
        )
        parser.add_argument("--rejects", metavar="FILE", help="write refused rows to a file, as JSON lines")
        parser.add_argument(
            "--no-validate",
            action="store_false",
            dest="validate",
            help="accept values that the choices and validators of fields reject",
        )
        parser.add_argument("--rate", type=float, help="the most write units a second, on average")
        parser.add_argument("--chunk-size", type=int, default=500, help="rows in memory (default: %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        if options["verbosity"] == 0:
            self.stdout = OutputWrapper(StringIO())
        try:
            report = self._run(options)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        except (DynamoSingleError, Error) as error:
            # The message of an SQL database may contain values.
            said = f"The SQL database raised {type(error).__name__}; --traceback shows its message."
            raise CommandError(
                f"{error if isinstance(error, DynamoSingleError) else said}\nThe objects of earlier rows are stored. "
                "Run the command again to continue."
            ) from error
        missing = sum(tally.outcomes["created"] for tally in report.tallies.values()) if options["check"] else 0
        found = [f"{counted(report.problems, 'row')} refused or stored with other values"] if report.problems else []
        found += [f"{counted(missing, 'row')} not stored"] if missing else []
        if found:
            raise CommandError(f"{'; '.join(found)}.")

    def _run(self, options: dict[str, Any]) -> Report:
        using = options["database"]
        _check(options)
        found = self._plan(using, options)
        converter = Converter(found, using, validates=options["validate"])
        for each in found.imports:
            self._announce(each, converter)
        if found.left_out:
            self.stdout.write(f"Not imported: {', '.join(source.label for source in found.left_out)}.")
        writes = not (options["dry_run"] or options["check"])
        self.stdout.write("Importing." if writes else "Comparing the rows with the table, without writing.")
        with ExitStack() as stack:
            rejects = options["rejects"] and stack.enter_context(Path(options["rejects"]).open("w"))
            report = Report(rejects or None)
            importer = Importer(
                found,
                converter,
                report,
                size=options["chunk_size"],
                writes=writes,
                pace=Pace(writes=options["rate"]),
                progress=self._progress,
            )
            importer.run()
        for each in found.imports:
            self._total(each, report.of(each), writes=writes)
        return report

    def _plan(self, using: str, options: dict[str, Any]) -> Plan:
        tables = _tables(using, options["modules"])
        found = plan(tables, options["maps"], is_introspected=not options["modules"])
        for each in found.imports:
            _check_columns(each.source)
        return found

    def _announce(self, each: Import, converter: Converter) -> None:
        found = estimate(each, converter)
        self.stdout.write(
            f"{each.source.label} -> {each.model._meta.label}: {counted(found.rows, 'row')}; if all are new, about "
            f"{counted(found.requests, 'request')} and {counted(found.write_units, 'write unit')}."
        )

    def _progress(self, each: Import, tally: Tally) -> None:
        if tally.rows - tally.announced >= PROGRESS:
            tally.announced = tally.rows
            self.stdout.write(f"{each.source.label}: {tally.rows:,} rows")

    def _total(self, each: Import, tally: Tally, *, writes: bool) -> None:
        created = "created" if writes else "to create"
        numbers = ", ".join(
            f"{tally.outcomes[outcome]:,} {words}"
            for outcome, words in (
                ("created", created),
                ("existed", "stored already"),
                ("different", "stored with other values"),
                ("refused", "refused"),
            )
            if tally.outcomes[outcome] or outcome == "created"
        )
        self.stdout.write(f"{each.source.label} -> {each.model._meta.label}: {counted(tally.rows, 'row')}: {numbers}.")
        for reason, number in tally.reasons.most_common():
            self.stdout.write(f"  {number:,}: {reason}")
        for example in tally.examples:
            self.stdout.write(f"  {example}")


def _check(options: dict[str, Any]) -> None:
    using = options["database"]
    if using not in connections.settings:
        raise CommandError(f"--database {using}: DATABASES does not contain this alias. Add the SQL database to it.")
    if uses_engine(using):
        raise CommandError(f"--database {using}: this is DynamoDB. Name the alias of the SQL database.")
    if options["chunk_size"] < 1:
        raise CommandError("--chunk-size takes a positive number.")
    if atomic_block.current() is not None:
        raise CommandError(
            "Cannot import rows within an atomic() block, which has at most 100 actions. Call the command outside."
        )


def _tables(using: str, modules: list[str]) -> list[SourceTable]:
    if not modules:
        return introspected.tables_of(using)
    models = declared.models_of(modules)
    present = table_names(using)
    models += [
        model
        for model in declared.users_and_groups(present, has_users=any(map(declared.is_user, models)))
        if model not in models
    ]
    return declared.tables_of(models, using)


def _check_columns(source: SourceTable) -> None:
    present = table_names(source.using)
    for table in (source, *(link.through for link in source.links.values())):
        if table.table not in present:
            raise CommandError(
                f"{table.label}: the database {source.using!r} does not contain the table {table.table!r}. Correct "
                f"DATABASES[{source.using!r}], or omit the model with --map {table.label}="
            )
        missing = {column.column for column in table.own.values()} - column_names(table.using, table.table)
        if missing:
            raise CommandError(
                f"{table.label}: the table {table.table!r} has no column {', '.join(sorted(missing))}. Name a module "
                "of models that match the database."
            )
