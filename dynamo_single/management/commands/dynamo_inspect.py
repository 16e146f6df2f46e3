"""``manage.py dynamo_inspect``: propose settings and models for an existing table, or for a PynamoDB class."""

from __future__ import annotations

import argparse
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from msgspec.structs import replace

from dynamo_single.conf import TableSettings, table_settings
from dynamo_single.conf.shapes import OWN
from dynamo_single.contrib.inspection import describing, names, sample, source
from dynamo_single.exceptions import TableNotFound
from dynamo_single.management.base import TableCommand
from dynamo_single.setting_values import ENDPOINT
from dynamo_single.table.table import Table, table_at

#: The most items that ``--items`` takes.
MAX_ITEMS: Final = 10_000


class Command(TableCommand):
    """Print the settings of an alias and the source of models, as Django's ``inspectdb`` does for SQL.

    Reads the description of a table and at most ``--items`` items; ``contrib.inspection.sample`` documents the requests
    and their costs. With ``--model``, it reads a PynamoDB class and does not send a request. Nothing is written, and
    the output contains no stored values: ``--samples`` prints some to standard error, with secrets masked.
    """

    help = "Prints settings and models for an existing DynamoDB table, or for a PynamoDB class."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the table, the place of it, and the size of the sample."""
        super().add_arguments(parser)
        parser.add_argument("table", nargs="?", help="the name of the table in DynamoDB (default: the alias's table)")
        # inspectdb's name of the option.
        parser.add_argument("--database", dest="alias", default=argparse.SUPPRESS, help="the same as --alias")
        parser.add_argument("--endpoint", help="the endpoint of the table (default: the alias's)")
        parser.add_argument("--region", help="the AWS region of the table (default: the alias's)")
        parser.add_argument("--items", type=int, default=1000, help="the most items to read (default: %(default)s)")
        parser.add_argument("--samples", action="store_true", help="print stored values to standard error, masked")
        parser.add_argument("--model", help="the dotted path of a PynamoDB class to read instead of a table")

    def shows(self, options: dict[str, Any]) -> bool:
        """Return True: the purpose of the command is its output."""
        return True

    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Print the settings and the models."""
        if options["model"]:
            self._run_model(options)
            return
        if not 0 < options["items"] <= MAX_ITEMS:
            raise CommandError(f"--items must be between 1 and {MAX_ITEMS}.")
        settings = _settings(table.settings, options)
        try:
            read = sample.read(table_at(settings), options["items"])
        except TableNotFound as error:
            raise CommandError(
                f"The table {settings.table_name!r} does not exist at {settings.place}. Check its name, or pass "
                "another --endpoint or --region."
            ) from error
        described = describing.describe(read, settings, names.index_name(settings.table_name, ()))
        self.stdout.write(source.write(described.proposal))
        if options["samples"]:
            for model, kind, _ in described.models:
                for line in sample.lines(model, kind, described.layout):
                    self.stderr.write(line, lambda text: text)
        if read.failure:
            raise CommandError(f"The scan ended after {len(read.items)} items: {read.failure}")

    def _run_model(self, options: dict[str, Any]) -> None:
        # PynamoDB's classes are only read here.
        from dynamo_single.contrib.inspection import pynamodb_models

        if options["table"] or options["samples"]:
            raise CommandError("--model reads a class rather than a table: omit the table and --samples.")
        model = pynamodb_models.imported(options["model"])
        region = options["region"] or table_settings(options["alias"]).region
        self.stdout.write(source.write(pynamodb_models.describe(model, region)))


def _settings(settings: TableSettings, options: dict[str, Any]) -> TableSettings:
    """Return the settings of the inspected table, whose keys are read under their own names."""
    read, allowed = ENDPOINT
    try:
        endpoint = read(options["endpoint"])
    except ValueError as error:
        # The message does not repeat the address, which may contain a secret.
        raise CommandError(f"--endpoint must be {allowed.removeprefix('None or ')}.") from error
    return replace(
        settings,
        table_name=options["table"] or settings.table_name,
        endpoint_url=endpoint or settings.endpoint_url,
        region=options["region"] or settings.region,
        shape=OWN,
    )
