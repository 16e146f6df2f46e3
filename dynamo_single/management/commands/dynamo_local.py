"""``manage.py dynamo_local``: run a local engine for development, in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from django.core.management.base import CommandError, CommandParser

from dynamo_single.conf import engine_setting
from dynamo_single.engines import CHOICES, DATA_FILE, LocalEngine, find_engine, stopped_by_signals
from dynamo_single.management.base import TableCommand
from dynamo_single.table.table import Table


class Command(TableCommand):
    """Run the engine as a child process until Ctrl-C, SIGTERM or the end of the engine itself."""

    help = "Finds a local engine (Dynoxide, else DynamoDB Local) and runs it until Ctrl-C, keeping the data on disk."
    requires_system_checks = ()  # an engine is also needed while models have errors

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options for the port and the data."""
        super().add_arguments(parser)
        parser.add_argument("--port", type=int, help="the port (default: the port of the alias's endpoint)")
        parser.add_argument(
            "--engine",
            help=f"{', '.join(CHOICES)}, or the path of an engine (default: the setting DYNAMO_SINGLE_ENGINE)",
        )
        kept = parser.add_mutually_exclusive_group()
        kept.add_argument("--db-path", type=Path, help=f"the file for the data (default: {DATA_FILE})")
        kept.add_argument("--memory", action="store_true", help="keep the data in memory only")

    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Start the engine and wait for its end."""
        root = Path(getattr(django_settings, "BASE_DIR", Path.cwd()))
        port = options["port"] or _port_of_settings(table)
        engine = find_engine(root, options["engine"] or engine_setting())
        db_path = None if options["memory"] else (options["db_path"] or root / DATA_FILE)
        try:
            with stopped_by_signals(), LocalEngine(engine, port=port, db_path=db_path) as running:
                self._announce(table, running)
                status = running.wait()
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
            return
        raise CommandError(f"{engine.name} ended by itself, with status {status}.")

    def _announce(self, table: Table, running: LocalEngine) -> None:
        kept = f"data in {running.db_path}" if running.db_path else "data in memory, lost at the end"
        self.stdout.write(
            self.style.SUCCESS(
                f"{running.engine.name} runs at {running.endpoint_url}, {kept}. Press Ctrl-C to stop it."
            )
        )
        if not running.engine.loopback_only:
            self.stdout.write(
                self.style.WARNING(
                    f"{running.engine.name} listens on every address of this machine, not only loopback."
                )
            )
        if table.settings.is_local and _port_of_settings(table) != running.port:
            self.stdout.write(
                self.style.WARNING(
                    f"DYNAMO_SINGLE[{table.settings.alias!r}] points at {table.settings.endpoint_url}, "
                    f"not at {running.endpoint_url}."
                )
            )
        self.stdout.flush()


def _port_of_settings(table: Table) -> int:
    parts = urlsplit(table.settings.endpoint_url or "")
    if not table.settings.is_local:
        raise CommandError(
            f"DYNAMO_SINGLE[{table.settings.alias!r}] points at {table.settings.place}, which is not on this machine. "
            "Name a port with --port, or an endpoint such as dynamodb://127.0.0.1:8001/single-table in the setting."
        )
    return parts.port or (443 if parts.scheme == "https" else 80)
