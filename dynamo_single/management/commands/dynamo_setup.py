"""``manage.py dynamo_setup``: update the table to the settings."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo_single.conf import TableSettings
from dynamo_single.management.base import TableCommand
from dynamo_single.orm.rollout import shard_record
from dynamo_single.table import schema
from dynamo_single.table.schema import Difference
from dynamo_single.table.table import Table


class Command(TableCommand):
    """Create the table, or add what it lacks. Can be repeated safely, and deletes nothing."""

    help = (
        "Creates the table, or brings it up to the settings: indexes, time to live, billing mode. Waits until it is "
        "usable. Safe to repeat; deletes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--check`` and ``--dry-run``, which exclude each other."""
        super().add_arguments(parser)
        instead = parser.add_mutually_exclusive_group()
        instead.add_argument(
            "--check",
            action="store_true",
            help="print the differences without changing the table, and exit with 1 if there are any",
        )
        instead.add_argument("--dry-run", action="store_true", help="print the planned changes without making them")

    def shows(self, options: dict[str, Any]) -> bool:
        """Return whether this is a dry run, whose purpose is its output."""
        return bool(options["dry_run"])

    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Check, rehearse or apply."""
        if options["check"]:
            self._check(table)
        elif options["dry_run"]:
            self._rehearse(table)
        else:
            self._apply(table)

    def _check(self, table: Table) -> None:
        found = schema.differences(table.settings, schema.observe(table))
        self._note(found)
        wrong = [each for each in found if each.repair != "unneeded"]
        for each in wrong:
            self.stdout.write(self.style.WARNING(each.sentence))
        if wrong:
            way_out = "Run dynamo_setup." if all(each.repair == "automatic" for each in wrong) else ""
            raise CommandError(f"The table {table.name!r} does not match the settings. {way_out}".strip())
        self.stdout.write(self.style.SUCCESS(f"The table {table.name!r} matches the settings."))

    def _rehearse(self, table: Table) -> None:
        found = schema.differences(table.settings, schema.observe(table))
        schema.refuse(table.settings, found)
        self._note(found)
        steps = [each for each in found if each.repair == "automatic"]
        for each in steps:
            self.stdout.write(f"Would {_deed(table.settings, each)}.")
        if not steps:
            self.stdout.write(self.style.SUCCESS(f"Nothing to do: {table.name!r} matches the settings."))

    def _apply(self, table: Table) -> None:
        observed = schema.observe(table)
        schema.refuse(table.settings, schema.differences(table.settings, observed))
        if observed.table is not None:
            shard_record.claim_table(table)

        def report(step: Difference) -> None:
            self.stdout.write(f"{step.sentence} Going to {_deed(table.settings, step)} ...")

        done = schema.apply(table, report=report)
        self._note(schema.differences(table.settings, schema.observe(table)))
        if observed.table is None:
            shard_record.claim_table(table)
        how = "is ready" if done else "was ready already. Nothing was changed"
        self.stdout.write(self.style.SUCCESS(f"The table {table.name!r} at {table.settings.place} {how}."))

    def _note(self, found: list[Difference]) -> None:
        for each in found:
            if each.repair == "unneeded":
                self.stdout.write(self.style.NOTICE(f"Note: {each.sentence}"))


def _deed(settings: TableSettings, step: Difference) -> str:
    """Describe the repair of a difference, as a verb phrase after "would" or "going to"."""
    if step.kind == "table":
        return f"create the table {settings.table_name!r} with the indexes {', '.join(settings.indexes) or '(none)'}"
    if step.kind == "index":
        return f"add the index {step.subject!r} and wait until it is filled"
    if step.kind == "billing mode":
        return f"change the billing mode to {settings.billing_mode}"
    return f"enable time to live on {settings.shape.ttl_attribute!r}"
