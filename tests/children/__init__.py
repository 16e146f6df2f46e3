"""Child processes of the tests that begin with everything imported: Python, Django and this app take most of a second.

A server for all test workers imports the tests once, and forks for every child. The child then does the same as a new
interpreter with its command line, folder and environment: it reads the settings and sets Django up. Tests of start-up
and of the running demo start real interpreters.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TextIO

ROOT = Path(__file__).resolve().parents[2]
#: Names the server to a child that starts further children, which are forked from there: see ``address()``.
SERVER = "TEST_CHILDREN"
#: The time to wait for a child; ``TEST_PATIENCE`` is for one request of the cases with very many items.
SECONDS = 120 if "TEST_PATIENCE" not in os.environ else 7200


class Child:
    """A process that the server forked: a part of ``subprocess.Popen`` for ``python`` command lines."""

    #: The number of children of this process.
    started = 0

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
        server: str = "",
        start_new_session: bool = False,
    ) -> None:
        self.args = [sys.executable, *arguments]
        self.returncode: int | None = None
        Child.started += 1
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(server or address())
        wanted = {"arguments": [*arguments], "cwd": str(cwd), "env": {**env}, "session": start_new_session}
        socket.send_fds(self._connection, [b"+"], [stdin, stdout, stderr])
        self._connection.sendall(json.dumps(wanted).encode() + b"\n")
        self.pid = self._number()

    def wait(self, timeout: float = SECONDS) -> int:
        """Its exit code, or the number of its signal below zero; raises ``subprocess.TimeoutExpired``."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = self._number()
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout) from None
            self._connection.close()
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.001)
        return self.returncode

    def _number(self) -> int:
        """Read the next line of the server byte by byte, so that a read after a timeout continues there."""
        line = b""
        while not line.endswith(b"\n"):
            more = self._connection.recv(1)
            assert more, "The server of children has ended: see its error."
            line += more
        return int(line)

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()


class Dialogue:
    """A child with line-by-line input and output."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stderr: IO[str], server: str = ""
    ) -> None:
        theirs, ours = os.pipe()
        self.stdin: TextIO = os.fdopen(ours, "w")
        ours, writes = os.pipe()
        self.stdout: TextIO = os.fdopen(ours)
        self._child = Child(
            arguments, cwd=cwd, env=env, stdin=theirs, stdout=writes, stderr=stderr.fileno(), server=server
        )
        os.close(theirs)
        os.close(writes)

    def tell(self, line: str) -> None:
        """Write a line, unless the child has ended."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.write(f"{line}\n")
            self.stdin.flush()

    def answer(self) -> str:
        """The next line that it writes, or nothing if it has ended."""
        return self.stdout.readline()

    def close(self, timeout: float = SECONDS) -> int:
        """Let it read the end of its input, and wait for its own: the exit code."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        self.stdout.close()
        return self._child.wait(timeout)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._child.pid

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self._child.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self._child.kill()


def run(
    arguments: Sequence[str],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str],
    input: str = "",
    timeout: float = SECONDS,
    together: bool = False,
    server: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run ``python`` with these arguments to its end; ``together`` returns output and errors as one text."""
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        given.write(input)
        given.seek(0)
        stderr = out if together else err
        child = Child(
            arguments,
            cwd=cwd,
            env=env,
            stdin=given.fileno(),
            stdout=out.fileno(),
            stderr=stderr.fileno(),
            server=server,
        )
        try:
            code = child.wait(timeout)
        finally:
            child.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(child.args, code, out.read(), err.read())


class Prepared:
    """A server whose children find the apps of a project imported, as long as their settings install the same ones.

    Each child imports the project's own modules and settings from its own folder.
    """

    def __init__(self, project: Path, settings: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="children")
        self.address = f"{self._folder.name}/socket"
        command = ["-m", "tests.children.server", self.address, settings]
        known = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "PYTEST_"))}
        self._process = Dialogue(command, cwd=project, env={**known, "PYTHONPATH": str(ROOT)}, stderr=sys.__stderr__)
        assert self._process.answer() == "ready\n", "The server of children did not start: see its error."

    def end(self) -> None:
        """End the dialogue; running children continue."""
        self._process.close()
        self._folder.cleanup()


class _Server:
    """The process that forks."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="children")
        self.address = f"{self._folder.name}/socket"
        # It reads the settings of no project: a child's do.
        known = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "PYTEST_"))}
        self._process = subprocess.Popen(  # noqa: S603 - a file of ours
            [sys.executable, str(Path(__file__).with_name("server.py")), self.address],
            cwd=ROOT,
            env={**known, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "The server of children did not start: see its error."
        atexit.register(self.end)

    def end(self) -> None:
        """End the server, which stops when no process can send requests."""
        self._process.communicate(timeout=SECONDS)
        self._folder.cleanup()


def interpreter() -> str:
    """Return a command with the options of ``python -c`` or ``-m`` that a child runs."""
    return shlex.join([sys.executable, "-IS", str(Path(__file__).with_name("ask.py")), address()])


_servers: dict[int, _Server] = {}


def address() -> str:
    """Return the socket of this process's server: that of the environment, or its own."""
    return os.environ.get(SERVER) or _server().address


def _server() -> _Server:
    """Return this process's server: a fork must not share it, because two processes would mix their responses."""
    if os.getpid() not in _servers:
        _servers[os.getpid()] = _Server()
    return _servers[os.getpid()]
