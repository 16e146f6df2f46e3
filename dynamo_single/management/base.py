"""What the commands share: the choice of the alias, and our errors as command errors."""

from __future__ import annotations

from abc import abstractmethod
from io import StringIO
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper

from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.table.table import Table, get_table


class TableCommand(BaseCommand):
    """A command about one alias of ``DYNAMO_SINGLE``; an error of ours ends it with status 1 and its message."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--alias``."""
        parser.add_argument("--alias", default="default", help="the alias in DYNAMO_SINGLE (default: %(default)s)")

    def shows(self, options: dict[str, Any]) -> bool:
        """Return whether the output is what the command is for, so that it is written with ``--verbosity 0`` too."""
        return False

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command on the alias's table; with ``--verbosity 0`` it writes errors alone."""
        if options["verbosity"] == 0 and not self.shows(options):
            self.stdout = OutputWrapper(StringIO())
        try:
            self.run(get_table(options["alias"]), options)
        except DynamoSingleError as error:
            raise CommandError(str(error)) from error

    @abstractmethod
    def run(self, table: Table, options: dict[str, Any]) -> None:
        """What the command does."""
