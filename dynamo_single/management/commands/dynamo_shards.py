"""``manage.py dynamo_shards``: show and change the number of shards of sharded models."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from dynamo_single import clock
from dynamo_single.management.base import TableCommand
from dynamo_single.management.commands.dynamo_verify import model_of
from dynamo_single.orm.rollout import knowledge, schedules, shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Schedule
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.table.flow import run
from dynamo_single.table.table import Table


class Command(TableCommand):
    """Print the recorded numbers (one GetItem), or record a number (another GetItem and a PutItem)."""

    help = (
        "Shows the number of shards of each sharded model, and schedules a new number for a future time. "
        "Older items are not moved."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the model, the number, ``--since`` and ``--first``."""
        super().add_arguments(parser)
        parser.add_argument("model", nargs="?", metavar="APP.MODEL", help="the model; without one, all are shown")
        parser.add_argument("shards", nargs="?", type=int, metavar="NUMBER", help="how many shards there are to be")
        when = parser.add_mutually_exclusive_group()
        when.add_argument(
            "--since",
            metavar="TIME",
            help="from when on, such as 2027-01-01T00:00Z (default: as soon as every process knows, in 20 minutes)",
        )
        when.add_argument(
            "--first", action="store_true", help="at once, for a model of which the table holds no items yet"
        )

    def shows(self, options: dict[str, Any]) -> bool:
        """Return whether no number is given, so that the purpose of the command is its output."""
        return options["shards"] is None

    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Show or change the number."""
        if options["model"] is None:
            for layout in _sharded(table):
                self._show(table, layout)
            return
        layout = registry.layout_of(model_of(options["model"], table))
        if layout.sharding is None:
            raise CommandError(f"{layout.label} has no sharded key: declare models.Shards in its class Keys.")
        if options["shards"] is None:
            if options["since"] or options["first"]:
                raise CommandError("Give the number of shards too.")
            self._show(table, layout)
            return
        shard_record.check_owner(table)
        if options["first"]:
            found = shard_record.record_first(table, layout, options["shards"])
        else:
            since = shard_record.earliest_start(table) if options["since"] is None else _time(options["since"])
            found = shard_record.grow(table, layout, options["shards"], since)
        self._line(layout, found)

    def _show(self, table: Table, layout: ModelLayout) -> None:
        found = schedules.schedule_in(run(knowledge.state_of(table)), schedules.Divided.of(layout))
        if found is None:
            self.stdout.write(f"{layout.label}: nothing recorded; the first item that is written makes it 1 shard.")
        else:
            self._line(layout, found)

    def _line(self, layout: ModelLayout, schedule: Schedule) -> None:
        self.stdout.write(self.style.SUCCESS(f"{layout.label}: {schedule}."))


def _sharded(table: Table) -> list[ModelLayout]:
    layouts = (registry.layout_of(model) for model in registry.all_models())
    return [each for each in layouts if each.alias == table.settings.alias and each.sharding is not None]


def _time(text: str) -> datetime:
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise CommandError(f"--since takes a date and time such as 2027-01-01T00:00Z, not {text!r}.")
    return clock.in_utc(found)
