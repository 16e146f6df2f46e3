"""``python -m dynamo_single startproject``: the project that it writes runs, in processes of its own.

The package is importable there without the rest of this repository.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

import dynamo_single
from dynamo_single.engines import HOST, PACKAGE, PACKAGE_VERSION, LocalEngine, find_engine, free_port

ROOT = Path(__file__).resolve().parents[3]
#: The package that the tests import: of the checkout, or installed.
PACKAGE_FOLDER = Path(dynamo_single.__file__).parent
TEMPLATE = PACKAGE_FOLDER / "project_template"
#: Variables that the environment of a user does not have.
OF_TESTS = ("DJANGO_", "DYNAMO_", "PYTEST_")
PASSWORD = "a-good-password"


class Place:
    """A folder in which commands run, with the package and an engine."""

    def __init__(self, folder: Path, endpoint_url: str) -> None:
        (folder / "installed").mkdir()
        (folder / "installed" / "dynamo_single").symlink_to(PACKAGE_FOLDER)
        self.folder = folder
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OF_TESTS)}
        self.environment = inherited | {
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            "DYNAMO_URL": f"{endpoint_url.replace('http', 'dynamodb', 1)}/shop?region=us-east-1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(folder / "installed"),
        }

    def run(self, *arguments: str, folder: str = "", status: int = 0) -> str:
        """Run Python; return the output of a process that ends with this status."""
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder / folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert ended.returncode == status, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    @contextmanager
    def serving(self, folder: str) -> Iterator[str]:
        """Run the development server; yield its address once it responds."""
        address = f"{HOST}:{free_port()}"
        command = [sys.executable, "manage.py", "runserver", "--noreload", address]
        with (
            (self.folder / "server.log").open("w") as log,
            subprocess.Popen(
                command, cwd=self.folder / folder, env=self.environment, stdout=log, stderr=subprocess.STDOUT
            ) as server,
        ):
            try:
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline and server.poll() is None:
                    try:
                        build_opener().open(f"http://{address}/accounts/login/").close()
                        break
                    except URLError:
                        time.sleep(0.1)
                yield f"http://{address}"
            finally:
                server.terminate()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """An empty folder and an engine."""
    with LocalEngine(find_engine(ROOT)) as engine:
        yield Place(tmp_path, engine.endpoint_url)


def test_project_runs(place: Place) -> None:
    """The README's commands succeed; a user logs in over HTTP, and stores a note."""
    place.run("-m", "dynamo_single", "startproject", "shop")
    readme = (place.folder / "shop" / "README.md").read_text()
    assert f"npm install {PACKAGE}@{PACKAGE_VERSION}" in readme
    commands = re.findall(r"python manage\.py (\w+)", readme)
    assert {"dynamo_setup", "createsuperuser", "runserver", "check"} <= {*commands}
    place.run("manage.py", "check", "--fail-level=WARNING", folder="shop")
    place.run("manage.py", "dynamo_setup", folder="shop")
    place.run(
        *("manage.py", "createsuperuser", "--noinput", "--username=ann", "--email=ann@example.com"), folder="shop"
    )
    opener = build_opener(HTTPCookieProcessor(CookieJar()))
    with place.serving("shop") as address:

        def read(path: str, **values: str) -> str:
            data = urlencode({**values, "csrfmiddlewaretoken": token}).encode() if values else None
            with opener.open(f"{address}{path}", data) as response:
                return str(response.read().decode())

        token = ""
        for path, values in (
            ("/accounts/login/", {"username": "ann", "password": PASSWORD}),
            ("/", {"text": "The first note"}),
        ):
            token = re.findall(r'csrfmiddlewaretoken" value="(\w+)"', read(path))[0]
            page = read(path, **values)
        assert "The first note" in page
        assert "The first note" in read("/admin/notes/note/")


def test_migrations_adopt_project(place: Place) -> None:
    """The commands that the README names before a deployment record the models of both apps."""
    place.run("-m", "dynamo_single", "startproject", "shop")
    place.run("manage.py", "dynamo_setup", folder="shop")
    assert "Add model Note" in place.run("manage.py", "makemigrations", "accounts", "notes", folder="shop")
    assert "notes.0001_initial... OK" in place.run("manage.py", "migrate", "--fake-initial", folder="shop")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["startproject", "notes"], "Cannot name the project 'notes': it contains an app with this name"),
        (["startproject", "in-valid"], "'in-valid' is not a valid project name"),
        (["startproject"], "the following arguments are required: name"),
        (["migrate"], "usage: python -m dynamo_single startproject NAME"),
        ([], "usage: python -m dynamo_single startproject NAME"),
    ],
)
def test_command_rejects_arguments(place: Place, arguments: list[str], expected: str) -> None:
    """No file is written."""
    status = 1 if len(arguments) == 2 else 2  # a wrong value or wrong arguments
    assert expected in place.run("-m", "dynamo_single", *arguments, status=status)
    assert [path.name for path in place.folder.iterdir()] == ["installed"]


def test_template_has_the_accounts_of_this_repository() -> None:
    """The concrete app exists twice, with the same code."""
    for path in (TEMPLATE / "accounts").iterdir():
        assert path.read_text() == (ROOT / "accounts" / f"{path.stem}.py").read_text()
