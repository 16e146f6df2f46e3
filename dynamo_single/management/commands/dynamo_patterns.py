"""``manage.py dynamo_patterns``: list how each model is read, for a project's own documentation."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from dynamo_single.contrib.doctor.patterns import by_index, patterns, picture
from dynamo_single.management.base import TableCommand
from dynamo_single.table.table import Table


class Command(TableCommand):
    """Print every model's keys with the queries that they support. Sends no requests."""

    help = "Lists the access patterns of all models as a Markdown table, or draws them as SVG."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--svg``."""
        super().add_arguments(parser)
        parser.add_argument("--svg", action="store_true", help="print a picture (SVG) instead of the list")

    def shows(self, options: dict[str, Any]) -> bool:
        """Return True: the purpose of the command is its output."""
        return True

    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Print the list or the picture."""
        found = patterns(table.settings.alias)
        if options["svg"]:
            self.stdout.write(picture(by_index(found)))
            return
        self.stdout.write("| model | key | index | partition key | sort key | queries |\n|---|---|---|---|---|---|")
        for pattern in found:
            queries = "<br>".join(_code(str(answer)) for answer in pattern.answers)
            keys = f"{_code(pattern.partition)} | {_code(pattern.sort)}"
            self.stdout.write(f"| {pattern.label} | {pattern.name} | {pattern.index} | {keys} | {queries} |")


def _code(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`"
