"""A scratch project for one page: its files, its shell and its Python session, on an engine of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests import children
from tests.docs.pages import ROOT, Block
from tests.docs.session import matches

COMMAND_SECONDS = 60
_ASSIGNMENT = re.compile(r"(?P<name>[A-Z_]+)=(?P<value>.*)")

#: Lines that a page shows and the tests do not run: their prefix, and the test that runs them.
RUN_ELSEWHERE = {
    "make run": "tests/contract/commands/test_demo.py",
    "make test": ".ci/run",
    "pip install": "Makefile",
    "npm install": "Makefile",
    "npm ci": "Makefile",
    "python manage.py startapp accounts": "tests/contract/accounts/test_accounts_own_app.py",
    "python manage.py dynamo_local": "tests/contract/table/test_engines.py",
    "python manage.py runserver": "tests/contract/commands/test_demo.py",
}


#: Variables that a new user's environment lacks.
_OF_TESTS = ("DJANGO_", "DYNAMO_", "PYTEST_")


@dataclass
class Project:
    """The project of one page."""

    root: Path
    endpoint_url: str
    #: The server that forks processes, unless it is shared by all tests.
    server: str = ""
    mistakes: list[str] = field(default_factory=list)
    _session: children.Dialogue | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of everything that runs in the project."""
        url = f"{self.endpoint_url.replace('http', 'dynamodb', 1)}/single-table?region=us-east-1"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OF_TESTS)}
        return inherited | {
            "DYNAMO_URL": url,
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
        }

    def run(self, block: Block) -> None:
        """Run a block, and record differences from its output."""
        if block.language == "console":
            self._console(block)
        elif block.path:
            self._write(block)
        elif block.language == "python":
            self._python(block)

    def _write(self, block: Block) -> None:
        # A developer who changes a file starts the shell again.
        self.close()
        path = self.root / block.path
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if block.adds else ""
        _, _, text = block.text.partition("\n")
        try:
            compile(text, block.where, "exec")
        except SyntaxError as error:
            self.mistakes.append(f"{block.where}: {error}")
        path.write_text(f"{before}\n{text}\n")

    # the shell

    def _console(self, block: Block) -> None:
        steps: list[tuple[int, str, list[str]]] = []
        for number, line in enumerate(block.text.splitlines(), start=block.line):
            if line.startswith("$ "):
                steps.append((number, line[2:], []))
            elif steps:
                steps[-1][2].append(line.rstrip())
            else:
                self.mistakes.append(f"{block.where}: a console block begins with a command, a line with '$ '.")
                return
        for number, line, expected in steps:
            self._step(f"{block.page.relative_to(ROOT)}:{number}", line, "\n".join(expected))

    def _step(self, where: str, line: str, expected: str) -> None:
        elsewhere = next((path for start, path in RUN_ELSEWHERE.items() if line.startswith(start)), None)
        if elsewhere is not None:
            if not (ROOT / elsewhere).is_file():
                self.mistakes.append(f"{where}: {line!r} is not run here, and {elsewhere}, which runs it, is missing.")
            return
        words = shlex.split(line)
        environment = self.environment
        while words and (found := _ASSIGNMENT.fullmatch(words[0])):
            environment[found["name"]] = found["value"]
            words.pop(0)
        if words == ["cd", self.root.name]:
            return
        command = {"python": [], "django-admin": ["-m", "django"]}.get(words[0])
        if command is None:
            self.mistakes.append(f"{where}: {words[0]!r} is no command that the tests know.")
            return
        if words[1:3] == ["startproject", self.root.name]:
            return  # the harness made it, from the same command
        self.close()
        child = children.run(
            [*command, *words[1:]],
            cwd=self.root,
            env=environment,
            timeout=COMMAND_SECONDS,
            together=True,
            server=self.server,
        )
        got = "\n".join(each.rstrip() for each in child.stdout.rstrip().splitlines())
        if expected and not matches(expected, got):
            self.mistakes.append(f"{where}: expected\n{expected}\ngot\n{got}")
        elif not expected and child.returncode:
            self.mistakes.append(f"{where}: {line!r} ended with status {child.returncode}\n{got}")

    # the session

    def _python(self, block: Block) -> None:
        session = self._session or self._start()
        asked = {"source": block.text, "filename": str(block.page.relative_to(ROOT)), "line": block.line}
        session.tell(json.dumps(asked))
        answer = session.answer()
        if answer:
            self.mistakes.extend(json.loads(answer))
            return
        self._session = None
        status = session.close(COMMAND_SECONDS)
        said = self._log.read_text()[-3000:]
        self.mistakes.append(f"{block.where}: the Python session ended with status {status}\n{said}")

    @property
    def _log(self) -> Path:
        return self.root / "session.log"

    def _start(self) -> children.Dialogue:
        with self._log.open("w") as log:
            session = ["-m", "tests.docs.session"]
            self._session = children.Dialogue(
                session, cwd=self.root, env=self.environment, stderr=log, server=self.server
            )
        return self._session

    def close(self) -> None:
        """End the session, if one runs."""
        session, self._session = self._session, None
        if session is not None:
            session.close(COMMAND_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make(template: Path, target: Path, endpoint_url: str, server: str = "") -> Project:
    """A project like the template, on an engine; ``server`` forks its processes, if another than that of all tests."""
    shutil.copytree(template, target)
    # Where npm would put the engine.
    (target / "node_modules").symlink_to(ROOT / "node_modules")
    # Metadata that pip would install: pytest finds the plugin with it.
    installed = target / "dynamo_single.dist-info"
    installed.mkdir()
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {declared['name']}\nVersion: 0\n")
    plugins = [f"{name} = {module}" for name, module in declared["entry-points"]["pytest11"].items()]
    (installed / "entry_points.txt").write_text("\n".join(["[pytest11]", *plugins]))
    return Project(target, endpoint_url, server)


def start(directory: Path, *, app: str = "") -> Path:
    """Create the result of ``django-admin startproject mysite``, with an app if one is named."""
    _made(["-m", "django", "startproject", "mysite"], directory)
    root = directory / "mysite"
    with (root / "mysite/settings.py").open("a") as settings:
        # Django's own takes a third of a second for each password; no page shows one.
        settings.write('\nPASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]\n')
    if app:
        _made(["manage.py", "startapp", app], root)
    return root


def _made(command: list[str], folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    child = children.run(command, cwd=folder, env=environment)
    assert child.returncode == 0, child.stderr
