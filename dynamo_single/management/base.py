"""The base class of the commands: the choice of the alias, and our errors as command errors."""

from __future__ import annotations

from abc import abstractmethod
from io import StringIO
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper

from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.table.table import Table, get_table


class TableCommand(BaseCommand):
    """A command for one alias of ``DYNAMO_SINGLE``. Errors of this app end it with their message and status 1."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--alias``."""
        parser.add_argument("--alias", default="default", help="the alias in DYNAMO_SINGLE (default: %(default)s)")

    def shows(self, options: dict[str, Any]) -> bool:
        """Return whether the command's purpose is its output, so that it is written even with ``--verbosity 0``."""
        return False

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command on the alias's table. With ``--verbosity 0`` it writes only errors."""
        if options["verbosity"] == 0 and not self.shows(options):
            self.stdout = OutputWrapper(StringIO())
        try:
            self.run(get_table(options["alias"]), options)
        except DynamoSingleError as error:
            raise CommandError(str(error)) from error

    @abstractmethod
    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Run the command."""
