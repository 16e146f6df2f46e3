"""pytest with pytest-django and our plugin: marked tests use test tables, and other tests cannot use a table."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests import children
from tests.contract.isolation.runs import PLUGINS, ROOT, Development, development
from tests.deep import deep
from tests.isolated_project import MANY

FUNCTIONS = "tests/isolated_project/functions.py"
CLASSES = "tests/isolated_project/stock.py"


@pytest.fixture
def running() -> Iterator[Development]:
    """An engine with a development table."""
    with development() as found:
        yield found


def processes(workers: str) -> list[str]:
    """The options for as many processes; an interpreter of its own takes each longer to start than the tests take."""
    number, _, forked = workers.partition(" ")
    return ["--dist", "load", "--tx", f"{number}*popen//python={children.interpreter()}"] if forked else ["-n", number]


@pytest.mark.parametrize(
    ("settings", "workers"),
    [
        pytest.param("settings", "4", marks=deep),
        pytest.param("settings_sql", "4", marks=deep),
        ("settings", "2 forked"),
        ("settings", "0"),
        ("settings_sql", "0"),
    ],
)
def test_many_tests_write_the_same_keys(running: Development, settings: str, workers: str) -> None:
    """Each test finds its table empty, and the development table and the engine are as before."""
    before = running.state()
    said = running.pytest(*processes(workers), FUNCTIONS, settings=settings)
    assert f"{MANY + 15} passed" in said
    assert said.endswith("ended with 0"), said
    assert running.state() == before


@pytest.mark.parametrize(
    ("settings", "workers"),
    [("settings", "0"), ("settings_sql", "2 forked"), pytest.param("settings", "2", marks=deep)],
)
def test_djangos_classes_run_under_pytest(running: Development, settings: str, workers: str) -> None:
    """Test classes are integrated the same way."""
    before = running.state()
    said = running.pytest(*processes(workers), CLASSES, settings=settings)
    assert "39 passed" in said
    assert said.endswith("ended with 0"), said
    assert running.state() == before


def test_a_failing_test_shows_its_requests(running: Development) -> None:
    """The failure contains the fixture's output."""
    said = running.pytest("tests/isolated_project/failing.py")
    assert "Requests: 1, capacity units: 2\n1. PutItem {'" in said
    assert said.endswith("ended with 1"), said


def test_reuse_db_keeps_the_table(running: Development) -> None:
    """The option of pytest-django means what ``--keepdb`` does."""
    said = running.pytest("--reuse-db", f"{FUNCTIONS}::test_the_fixture_opens_the_table")
    assert said.endswith("ended with 0"), said
    assert "test_notes" in running.tables()


def test_pytest_finds_the_plugin_where_the_package_is_installed() -> None:
    """The entry point names the module."""
    (name,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"].values()
    assert import_module(name).dynamo_requests


def test_without_the_plugin_no_table_is_reached_but_those_of_own_engines(running: Development) -> None:
    """This includes the tests and their processes; the message names the alternative."""
    before = running.state()
    said = running.pytest("tests/isolated_project/unplugged.py", plugins=PLUGINS[:-1])
    assert "5 passed, 1 skipped" in said, said
    assert running.state() == before


def test_test_functions_are_undone_without_a_scan(running: Development) -> None:
    """Only the last test of each file scans."""
    said = running.pytest("tests/isolated_project/scanned.py")
    assert "3 passed" in said, said
