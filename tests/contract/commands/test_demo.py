"""``manage.py demo``, which ``make run`` starts: a site from nothing, three ways to log in, data that stays."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest
from django.utils.autoreload import DJANGO_AUTORELOAD_ENV

from dynamo_single.engines import LocalEngine, find_engine, free_port, is_free
from tests import children

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 60


def environment(dynamo_port: int | str) -> dict[str, str]:
    """The environment of a process of the demo."""
    inherited = {name: value for name, value in os.environ.items() if name != "DYNAMO_URL"}
    return inherited | {
        "DYNAMO_PORT": str(dynamo_port),
        "DJANGO_SETTINGS_MODULE": "tests.settings_demo",
        "DJANGO_SUPERUSER_PASSWORD": "not-the-demo's",
        "PYTHONUNBUFFERED": "1",
    }


class Demo:
    """A running demo and its output.

    ``forked`` spares it an interpreter of its own, and its web server the process that would start it again.
    """

    process: subprocess.Popen[bytes] | children.Child

    def __init__(self, data: Path, web_port: int, dynamo_port: int, *, forked: bool) -> None:
        self.address = f"http://127.0.0.1:{web_port}"
        self.output = data.with_suffix(".log")
        command = ["manage.py", "demo", "--port", str(web_port), "--db-path", str(data)]
        env, new = environment(dynamo_port), True
        if forked:
            env[DJANGO_AUTORELOAD_ENV] = "true"
        with self.output.open("w") as output, Path(os.devnull).open() as nothing:
            out = output.fileno()
            if forked:
                self.process = children.Child(
                    command, cwd=ROOT, env=env, stdin=nothing.fileno(), stdout=out, stderr=out, start_new_session=new
                )
            else:
                interpreter = [sys.executable, *command]
                self.process = subprocess.Popen(
                    interpreter, cwd=ROOT, env=env, stdin=nothing, stdout=out, stderr=out, start_new_session=new
                )

    def printed(self) -> str:
        """Return the output so far."""
        return self.output.read_text()

    def wait_until_ready(self) -> None:
        """Return when the URLs are printed."""
        deadline = time.monotonic() + SECONDS
        while "The demo is at" not in self.printed():
            assert self.process.poll() is None, self.printed()
            assert time.monotonic() < deadline, self.printed()
            time.sleep(0.1)

    def interrupt(self) -> int:
        """Press Ctrl-C: the signal goes to the whole group, as a terminal sends it."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(SECONDS)

    def log_in(self, identifier: str) -> str:
        """The admin's index as it is after a login."""
        opener = build_opener(HTTPCookieProcessor(CookieJar()))
        with opener.open(f"{self.address}/admin/login/?next=/admin/directory/company/") as page:
            token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page.read().decode())
        assert token
        form = {"csrfmiddlewaretoken": token[1], "username": identifier, "password": "admin-demo"}
        body = urlencode({**form, "next": "/admin/directory/company/"}).encode()
        request = Request(f"{self.address}/admin/login/", body, {"Referer": self.address})
        with opener.open(request) as page:
            return str(page.read().decode())


@contextmanager
def demo(data: Path, web_port: int, dynamo_port: int, *, forked: bool = False) -> Iterator[Demo]:
    """Run a demo, and stop it after the test."""
    running = Demo(data, web_port, dynamo_port, forked=forked)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            os.killpg(running.process.pid, signal.SIGKILL)
            running.process.wait()


def refused(data: Path, web_port: int | str, dynamo_port: int | str) -> str:
    """Return the output of a demo that does not start; it runs in this interpreter, since it ends early."""
    command = ["manage.py", "demo", "--port", str(web_port), "--db-path", str(data)]
    child = children.run(command, env=environment(dynamo_port), together=True)
    assert child.returncode == 1, child.stdout
    return child.stdout


@pytest.fixture
def ports() -> tuple[int, int]:
    """A free port for the web server and one for the engine."""
    return free_port(), free_port()


def test_the_demo_runs_and_keeps_its_data(tmp_path: Path, ports: tuple[int, int]) -> None:
    """The first run makes table, data and user; each login works; Ctrl-C ends all; the next run finds it."""
    with demo(tmp_path / "demo.sqlite", *ports) as first:
        first.wait_until_ready()
        pages = [first.log_in("admin@example.com"), first.log_in("admin"), first.log_in("+1 202-555-0123")]
        assert all("28 companies" in page for page in pages)
        assert first.interrupt() == 0
        assert "The demo has ended; its data is kept." in first.printed()
    assert all(map(is_free, ports))
    with demo(tmp_path / "demo.sqlite", *ports, forked=True) as second:
        second.wait_until_ready()
        assert "was ready already. Nothing was changed" in second.printed()
        assert "Loading the demo data" not in second.printed()
        assert "28 companies" in second.log_in("admin")
        second.interrupt()


def test_the_demo_makes_no_superuser_beside_another(tmp_path: Path, ports: tuple[int, int]) -> None:
    """If a superuser exists, the demo reports this instead of adding one with a public password."""
    data = tmp_path / "demo.sqlite"
    with LocalEngine(find_engine(ROOT), port=ports[1], db_path=data):
        for arguments in (
            ["dynamo_setup"],
            ["createsuperuser", "--noinput", "--username", "boss", "--email", "boss@example.com"],
        ):
            made = children.run(["manage.py", *arguments], env=environment(ports[1]))
            assert made.returncode == 0, made.stderr
    with demo(data, *ports, forked=True) as running:
        running.wait_until_ready()
        assert "log in as the superuser that you made" in running.printed()
        assert "admin-demo" not in running.printed()
        assert "Loading the demo data" in running.printed()
        assert "Please enter the correct e-mail address, telephone number or user name" in running.log_in("admin")


@pytest.mark.parametrize(
    ("web_port", "dynamo_port", "message"),
    [
        ("8000", "99999", "ImproperlyConfigured: DYNAMO_PORT must be a port, a number from 1 to 65535, not '99999'."),
        ("8000", "x", "ImproperlyConfigured: DYNAMO_PORT must be a port, a number from 1 to 65535, not 'x'."),
        ("99999", "8001", "CommandError: WEB_PORT must be a port, a number from 1 to 65535, not '99999'."),
        ("8001", "8001", "CommandError: WEB_PORT and DYNAMO_PORT are both 8001, but the web server and the engine"),
    ],
)
def test_a_wrong_port_is_one_line(tmp_path: Path, web_port: str, dynamo_port: str, message: str) -> None:
    """The error names the variable, without a traceback, and the demo does not start a process."""
    printed = refused(tmp_path / "demo.sqlite", web_port, dynamo_port)
    assert printed.startswith(message)
    assert printed.count("\n") == 1
    assert not (tmp_path / "demo.sqlite").exists()


@pytest.mark.parametrize(("busy", "message"), [(0, "the web server cannot start"), (1, "engine cannot start")])
def test_a_busy_port_is_a_clear_message(tmp_path: Path, ports: tuple[int, int], busy: int, message: str) -> None:
    """The demo names the taken port and the alternative, and ends all its processes."""
    import socket

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", ports[busy]))
        listener.listen()
        printed = refused(tmp_path / "demo.sqlite", *ports)
    assert f"Port {ports[busy]} is busy" in printed
    assert message in printed
    assert "make run" in printed
    assert not (tmp_path / "demo.sqlite").exists()
