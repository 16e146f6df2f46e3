"""``manage.py dynamo_status``: describe the table."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, connections

from dynamo_single.evolution.applied import unapplied_migrations
from dynamo_single.evolution.apply import is_responsible
from dynamo_single.exceptions import UnexpectedItem
from dynamo_single.management.base import TableCommand
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.schedules import known_schedule
from dynamo_single.table import schema
from dynamo_single.table.flow import run
from dynamo_single.table.names import ITEM_TYPE
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table


class Command(TableCommand):
    """Print endpoint, keys, indexes, time to live and billing, and unapplied or unfinished migrations.

    Sends three requests, four with migrations of items, and a Scan with ``--count``.
    """

    help = "Shows the table: endpoint, region, keys, indexes, time to live, billing mode; on request the item counts."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--count``."""
        super().add_arguments(parser)
        parser.add_argument(
            "--count", action="store_true", help="count the items of each type; reads the whole table (a Scan)"
        )

    def shows(self, options: dict[str, Any]) -> bool:
        """Return True: the purpose of the command is its output."""
        return True

    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Describe the table, and count its items with ``--count``."""
        observed = schema.observe(table)
        if observed.table is None:
            raise CommandError(
                f"The table {table.name!r} does not exist at {table.settings.place}. "
                f"Run `{table.settings.command('dynamo_setup')}`."
            )
        self._line("Endpoint", table.settings.place)
        self._line("Region", table.settings.region)
        self._describe(observed.table)
        status, attribute = observed.ttl.get("TimeToLiveStatus", "unknown"), observed.ttl.get("AttributeName")
        self._line("Time to live", f"{status} on {attribute}" if attribute else status)
        found = schema.differences(table.settings, observed)
        if any(each.repair != "unneeded" for each in found):
            self.stdout.write(
                self.style.WARNING(
                    f"It does not match the settings; `{table.settings.command('dynamo_setup --check')}` "
                    "lists the differences."
                )
            )
        self._migrations(table)
        if options["count"]:
            self._count(table)

    def _describe(self, table: schema.Description) -> None:
        self._line("Table", f"{table['TableName']}, {table['TableStatus']}")
        self._line("Keys", _keys(table))
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            for index in table.get(kind, ()):
                projection = index.get("Projection", {}).get("ProjectionType")
                status = index.get("IndexStatus", "local")
                self._line(f"Index {index['IndexName']}", f"{_keys(index)}, {projection}, {status}")
        billing = table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
        if billing == "PROVISIONED":
            units = table.get("ProvisionedThroughput", {})
            billing += f", {units.get('ReadCapacityUnits')} read and {units.get('WriteCapacityUnits')} write units"
        self._line("Billing", billing)

    def _migrations(self, table: Table) -> None:
        try:
            state = run(knowledge.state_of(table))
        except UnexpectedItem as error:
            self.stdout.write(self.style.ERROR(f"{'Migrations':<14} {error}"))
            return
        if state.owner:
            self._line("Owner", state.owner)
        for item_type, recorded in state.shards.items():
            self._line("Shards", f"{item_type}: {known_schedule(recorded, item_type)}")
        for name in self._unapplied():
            self.stdout.write(self.style.WARNING(f"{'Not applied':<14} {name}"))
        for form in state.forms.values():
            for change in form.opened:
                said = f"{change.migration}: {change.parameters.get('label', '')}, until migrate has carried it out"
                self.stdout.write(self.style.WARNING(f"{'Open change':<14} {said}"))

    def _unapplied(self) -> list[str]:
        try:
            return [name for alias in connections if is_responsible(alias) for name in unapplied_migrations(alias)]
        except (DatabaseError, ImproperlyConfigured) as error:
            return [f"The applied migrations cannot be read: {error}"]

    def _count(self, table: Table) -> None:
        counts: Counter[str] = Counter()
        consumed, requests = 0.0, 0
        params: dict[str, Any] = {
            "ProjectionExpression": "#type",
            "ExpressionAttributeNames": {"#type": ITEM_TYPE},
        }
        for page in table.pages(Request("Scan", params)):
            requests += 1
            consumed += page.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
            for item in page.get("Items", ()):
                counts[item.get(ITEM_TYPE, {}).get("S", "(no type)")] += 1
        for item_type, number in sorted(counts.items()):
            self._line(item_type, str(number))
        self._line("All items", str(counts.total()))
        self.stdout.write(
            self.style.NOTICE(f"Counted by a Scan of the whole table: {requests} requests, {consumed:g} read units.")
        )

    def _line(self, name: str, text: str) -> None:
        self.stdout.write(f"{name:<14} {text}")


def _keys(described: schema.Description) -> str:
    order = sorted(described["KeySchema"], key=lambda key: str(key["KeyType"]))  # HASH before RANGE
    return " and ".join(str(key["AttributeName"]) for key in order)
