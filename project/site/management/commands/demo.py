"""``manage.py demo``: set up and run the whole demo in one process group.

The engine and the web server are separate children of this process. Therefore the server's reloader never starts a
second engine, and Ctrl-C or SIGTERM stops everything.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError

from dynamo_single.conf import TableSettings, engine_setting, table_settings
from dynamo_single.engines import DATA_FILE, LocalEngine, answers, find_engine, is_free, stopped_by_signals
from dynamo_single.exceptions import DynamoSingleError

SERVER_SECONDS = 60.0
#: Plainly fake, and written only to a local engine.
ADMIN = {"username": "admin", "email": "admin@example.com", "password": "admin-demo"}
#: A number reserved for fiction, so SMS messages cannot reach a person.
PHONE = "+12025550123"


class Command(BaseCommand):
    """Start the engine, set up the table, load the demo data once, and serve the site until Ctrl-C."""

    help = "Starts a local engine with its data under var/, sets the table up, loads the demo data, serves the site."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the web server's port and the path of the data."""
        parser.add_argument("--port", default=os.environ.get("WEB_PORT", "8000"), help="the web server's port")
        parser.add_argument(
            "--db-path", type=Path, default=Path(settings.BASE_DIR) / DATA_FILE, help="where the engine keeps its data"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the demo."""
        table = table_settings()
        web_port = _port("WEB_PORT", options["port"])
        if not table.is_local:
            raise CommandError(
                f"The demo writes sample data and a well-known password, so it runs on a local engine only; DYNAMO_URL "
                f"points at {table.place}."
            )
        if web_port == _engine_port():
            raise CommandError(
                f"WEB_PORT and DYNAMO_PORT are both {web_port}, but the web server and the engine need a port each. "
                f"Give one of them another: WEB_PORT={web_port + 10} make run"
            )
        if not is_free(web_port):
            raise CommandError(
                f"Port {web_port} is busy, so the web server cannot start. Stop what listens there, or choose another "
                f"port: WEB_PORT={web_port + 10} make run"
            )
        with contextlib.suppress(KeyboardInterrupt):
            try:
                with stopped_by_signals(), self._engine(table, options["db_path"]) as engine:
                    call_command("dynamo_setup", stdout=self.stdout, stderr=self.stderr)
                    call_command("migrate", fake_initial=True, verbosity=0, stdout=self.stdout, stderr=self.stderr)
                    call_command("demo_data", stdout=self.stdout, stderr=self.stderr)
                    self._make_superuser()
                    self._serve(engine, web_port)
            except DynamoSingleError as error:
                raise CommandError(str(error)) from error
        self.stdout.write("\nThe demo has ended; its data is kept.")

    def _engine(self, table: TableSettings, data: Path) -> LocalEngine:
        port = _engine_port()
        if table.endpoint_url is None or not table.endpoint_url.endswith(f":{port}"):
            raise CommandError(f"DYNAMO_URL points at {table.place}, but the demo's engine uses DYNAMO_PORT={port}.")
        if not is_free(port):
            raise CommandError(
                f"Port {port} is busy, so the local DynamoDB engine cannot start; perhaps the demo runs already. Stop "
                f"what listens there, or choose another port: DYNAMO_PORT={port + 10} make run"
            )
        engine = LocalEngine(find_engine(settings.BASE_DIR, engine_setting()), port=port, db_path=data)
        self.stdout.write(f"{engine.engine.name} on {engine.endpoint_url}, data in {data}")
        return engine

    def _make_superuser(self) -> None:
        users = _users()
        if users.filter(is_superuser=True).exists():
            return
        try:
            users.create_superuser(**ADMIN).logins.add("phone", PHONE)
        except IntegrityError as error:
            raise CommandError(
                f"There is no superuser, and the demo cannot make one: {error} Make one with manage.py createsuperuser."
            ) from error

    def _serve(self, engine: LocalEngine, port: int) -> None:
        with _web_server(port) as server:
            deadline = time.monotonic() + SERVER_SECONDS
            while not answers(port):
                _check(server, engine)
                if time.monotonic() > deadline:
                    raise CommandError(f"The web server did not respond on port {port} in {SERVER_SECONDS:.0f} s.")
                time.sleep(0.1)
            self._announce(port)
            while True:
                _check(server, engine)
                time.sleep(0.5)

    def _announce(self, port: int) -> None:
        ways: tuple[str, ...] = ("  log in as the superuser that you made",)
        user = _demo_user()
        if user is not None:
            ways = (
                f"  log in by e-mail:    {ADMIN['email']} / {ADMIN['password']}",
                f"  or by user name:     {ADMIN['username']} / {ADMIN['password']}",
                *([f"  or by telephone:     {user.phone} / {ADMIN['password']}"] if user.phone else []),
            )
        lines = (
            "",
            f"The demo is at http://127.0.0.1:{port}/",
            *ways,
            "Ctrl-C ends the web server and the engine.",
        )
        self.stdout.write(self.style.SUCCESS("\n".join(lines)))
        self.stdout.flush()


def _users() -> Any:
    return get_user_model()._default_manager


def _demo_user() -> Any:
    """Return the demo's account if it still has the well-known password."""
    users = _users()
    try:
        user = users.get_by_natural_key(ADMIN["username"])
    except users.model.DoesNotExist:
        return None
    opens = user.is_superuser and user.email == ADMIN["email"] and user.check_password(ADMIN["password"])
    return user if opens else None


def _engine_port() -> int:
    return _port("DYNAMO_PORT", str(settings.DYNAMO_PORT))


def _port(name: str, text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 65536:
        return int(text)
    raise CommandError(f"{name} must be a port, a number from 1 to 65535, not {text!r}.")


@contextlib.contextmanager
def _web_server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = (sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), "runserver", f"127.0.0.1:{port}")
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, env={"ADMIN_PANEL": "true", **os.environ})
    try:
        yield server
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _check(server: subprocess.Popen[bytes], engine: LocalEngine) -> None:
    if server.poll() is not None:
        raise CommandError(f"The web server ended by itself, with status {server.returncode}.")
    if not engine.running:
        raise CommandError(f"{engine.engine.name} ended by itself; the web server was stopped.")
