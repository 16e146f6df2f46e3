"""The help desk as its users and its administrators run it: commands, a server, and a migration with data."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
from dynamo_single.engines import HOST, LocalEngine, find_engine, free_port

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Path(__file__).resolve().parent
#: Variables that the environment of a user does not have.
OF_TESTS = ("DJANGO_", "DYNAMO_", "PYTEST_")
PASSWORD = "a-good-password"
#: The lines of the code that the release with priorities added.
OF_PRIORITY = re.compile(r"^ +(priority|by_priority) = .*\n|\"priority\",\s*", re.MULTILINE)


class Desk:
    """The help desk in a folder, with a table on an engine."""

    def __init__(self, folder: Path, endpoint_url: str) -> None:
        self.folder = folder
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OF_TESTS)}
        address = endpoint_url.replace("http", "dynamodb", 1)
        self.environment = inherited | {
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            "DYNAMO_URL": f"{address}/helpdesk?region=us-east-1&indexes=gs1,gs2,gs3,gs4",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(ROOT),
        }

    def manage(self, *arguments: str) -> str:
        """Run a command that succeeds; return its output."""
        ended = subprocess.run(  # noqa: S603 - a fixed command line
            [sys.executable, "manage.py", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == 0, said
        return said

    @contextmanager
    def serving(self) -> Iterator[Api]:
        """Run the development server; yield a client of its API."""
        address = f"{HOST}:{free_port()}"
        command = [sys.executable, "manage.py", "runserver", "--noreload", address]
        with (
            (self.folder / "server.log").open("w") as log,
            subprocess.Popen(  # noqa: S603 - a fixed command line
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A shell's background job ignores SIGINT, and so would the server, for ever.
                preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
            ) as server,
        ):
            try:
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline and server.poll() is None:
                    try:
                        requests.get(f"http://{address}/accounts/login/", timeout=30)
                        break
                    except requests.ConnectionError:
                        time.sleep(0.1)
                yield Api(f"http://{address}")
            finally:
                server.send_signal(signal.SIGINT)
                try:
                    server.wait(timeout=60)
                except subprocess.TimeoutExpired:
                    server.kill()
                    raise


class Api:
    """A client of the REST API, by a token."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.session = requests.Session()

    def log_in(self, name: str) -> None:
        """Ask for a token."""
        token = self.send("post", "token/", username=name, password=PASSWORD)["token"]
        self.session.headers["Authorization"] = f"Token {token}"

    def send(self, method: str, path: str, status: int = 0, **values: object) -> Any:
        """Send a request; return the JSON of a response with this status, or of a success."""
        response = self.session.request(method, f"{self.address}/api/{path}", json=values or None, timeout=60)
        assert response.status_code == status or (not status and response.ok), response.text[:2000]
        return response.json() if response.content else None


#: Files that are not of the project: the tests of this repository.
NOT_OF_PROJECT = shutil.ignore_patterns("__pycache__", "conftest.py", "test_helpdesk.py")


def latest(folder: Path) -> Path:
    """Copy this release into a folder."""
    return Path(shutil.copytree(PROJECT, folder, ignore=NOT_OF_PROJECT))


def former(folder: Path) -> Path:
    """Copy the release before priorities into a folder."""
    desk = latest(folder) / "desk"
    for name in ("0002_ticket_priority.py", "0003_default_priority.py"):
        (desk / "migrations" / name).unlink()
    for name in ("models.py", "api.py"):
        (desk / name).write_text(OF_PRIORITY.sub("", (desk / name).read_text()))
    return folder


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    """An engine in memory."""
    with LocalEngine(find_engine(ROOT)) as running:
        yield running


def test_tests_of_project_pass(engine: LocalEngine, tmp_path: Path) -> None:
    desk = Desk(latest(tmp_path / "new"), engine.endpoint_url)
    desk.manage("check", "--fail-level=WARNING")
    said = desk.manage("test", "--noinput")
    assert re.search(r"Ran \d\d tests", said), said


def test_release_migrates_while_requests_come(engine: LocalEngine, tmp_path: Path) -> None:
    """The former release creates tickets until its server ends; the latest lists them all by priority."""
    old = Desk(former(tmp_path / "old"), engine.endpoint_url)
    new = Desk(latest(tmp_path / "new"), engine.endpoint_url)
    old.manage("dynamo_setup")
    old.manage("migrate")
    for name in ("ann", "ben"):
        old.manage("createsuperuser", "--noinput", f"--username={name}", f"--email={name}@example.com")
    titles: list[str] = []
    with old.serving() as api:
        api.log_in("ann")
        acme = api.send("post", "organizations/", name="Acme", slug="acme")["organization_id"]

        def write(stop: threading.Event) -> None:
            while not stop.is_set():
                created = api.send("post", "tickets/", organization=acme, title=f"{len(titles):03}", text="Help!")
                titles.append(created["title"])

        stop = threading.Event()
        writer = threading.Thread(target=write, args=[stop])
        writer.start()
        try:
            assert "Deploy, and run migrate again" in new.manage("migrate")
        finally:
            stop.set()
            writer.join()
        first = api.send("get", f"tickets/?organization={acme}")["results"][0]
        assert "priority" not in first
        api.send("post", "comments/", ticket=first["pk"], text="Me too.")
    with new.serving() as api:
        new.manage("migrate")
        api.log_in("ann")
        listed, address = [], f"tickets/?organization={acme}&priority=2"
        while address:
            page = api.send("get", address)
            listed += [ticket["title"] for ticket in page["results"]]
            address = page["next"] and page["next"].split("/api/")[1]
        assert sorted(listed) == sorted(titles)
        stored = api.send("get", "organizations/")["results"][0]
        assert (stored["ticket_count"], stored["open_count"]) == (len(titles), len(titles))
        assert api.send("get", f"tickets/{first['pk']}/")["comment_count"] == 1
        assert "0 findings" in new.manage("dynamo_verify")
        api.log_in("ben")
        api.send("get", f"tickets/{first['pk']}/", status=404)
        engine.stop()
        api.send("get", "organizations/", status=503)
