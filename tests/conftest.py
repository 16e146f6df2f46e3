"""Shared test setup: one engine per worker, and an empty table for each test that uses one."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import sys
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest.assertion import rewrite
from _pytest.runner import runtestprotocol
from django.conf import settings as project_settings
from django.contrib.admin.sites import AdminSite, all_sites
from django.urls import resolvers
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import engine as hypothesis_engine

from dynamo_single.engines import DYNOXIDE, available_engines
from dynamo_single.table import SentRequest, Table, capture_requests, get_table, redirects
from dynamo_single.testing import local_engine
from tests import children
from tests.deep import IS_DEEP, SEED, drawn, examples
from tests.ready import count_changes, table_ready
from tests.strict import IS_STRICT, in_front_of

# Some machines forbid Python to keep what it compiled: every process of the tests would compile Django again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# These tests run engines, proxies and faulty servers of their own, and their processes are to reach them.
os.environ.setdefault(redirects.VARIABLE, redirects.UNGUARDED)
redirects.inherit()

# Reference counting frees most objects of a test. A full garbage collection, which grows with every test, took a tenth
# of the time, and a collection of young objects a twentieth.
gc.set_threshold(200_000, 20, 20)

# With each new ROOT_URLCONF, Django resolves all URLs again. Compiled patterns are cached, which saves half of that.
resolvers.normalize = cache(resolvers.normalize)

# Tests do not depend on times: another process may use the processor. The examples of a property share a function's
# fixtures, and start by emptying them. A property without a number has 10 examples, and 200 in a deep run, twice
# Hypothesis' default.
settings.register_profile(
    "tests",
    deadline=None,
    max_examples=examples(10, 200),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tests")

# A property that fails is reduced for half a minute at most, and not for Hypothesis' five. It has no setting for it.
hypothesis_engine.MAX_SHRINKING_SECONDS = 30

ROOT = Path(__file__).resolve().parent.parent
#: ``TEST_ENGINE="DynamoDB Local"`` runs the same tests on the stricter engine.
ENGINE = os.environ.get("TEST_ENGINE", DYNOXIDE)

#: Set in the processes of a run that names no files: it draws some cases of tests that have many.
ALL_FILES = "TEST_ALL_FILES"

#: Folders whose tests take longest: begun first, so that no worker waits for the last of them.
FIRST = ("tests/upstream", "tests/benchmarks", "tests/helpdesk")


#: Fixtures of pytest-django that every test uses, each with the mark or fixture without which it has no effect.
FOR_SOME = {
    "_django_db_marker": "django_db",
    "_django_set_urlconf": "urls",
    "_django_isolate_apps": "django_isolate_apps",
    "_template_string_if_invalid_marker": "ignore_template_errors",
    "_live_server_helper": "live_server",
}
#: Fixtures that these use. A test's own fixtures still get them.
ASKED_FOR = {"monkeypatch", "request"}

#: The minimum of set-ups and tear-downs in ``--durations``, in seconds.
SLOW_FIXTURE = 0.05

#: The project's sites. Checks inspect all sites, including those of tests.
_sites: set[AdminSite] = set()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Name our marks, seed all random values, and let all workers have their children forked by one server.

    Hypothesis, which configures itself afterwards, draws by ``TEST_SEED`` as everything else does.
    """
    config.addinivalue_line("markers", "deep: run by `make test-deep` only")
    if config.args_source == pytest.Config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput"):
        os.environ[ALL_FILES] = "1"
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(SEED)
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        os.environ[children.SERVER] = children.address()
    if hasattr(config, "workerinput"):
        atexit.register(end_worker)


def end_worker() -> NoReturn:
    """End this process like Python, without destroying all objects: that took each worker a second or two.

    It runs after later registrations. The two earlier ones are called here.
    """
    weakref.finalize._exitfunc()  # type: ignore[attr-defined]
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # xdist waits for the end of the process, which has sent its results


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make no tests of the cases that this run skips: all workers made them, which took a third of the collection.

    These are the cases of the deep run, if a test has others, and those that a run of all files does not draw.
    """
    yield
    if IS_DEEP:
        return
    cases = [case for case in metafunc._calls if not _is_deep(case)] or metafunc._calls[:]
    metafunc._calls[:] = drawn(metafunc.definition.nodeid, cases, SEED) if ALL_FILES in os.environ else cases


def _is_deep(case: object) -> bool:
    return any(mark.name == "deep" for mark in getattr(case, "marks", ()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests of the deep run, and start with the slowest."""
    left_out = [] if IS_DEEP else [item for item in items if item.get_closest_marker("deep")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        skipped = {*left_out}
        items[:] = [item for item in items if item not in skipped]
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    for item in items:
        leave_out_fixtures(item)


def leave_out_fixtures(item: Any) -> None:
    """Remove fixtures of pytest-django without effect from a test: they take a seventh of a short test."""
    has = {mark.name for mark in item.iter_markers()}.union(item.fixturenames)
    needless = {name for name, wanted in FOR_SOME.items() if wanted not in has}
    if needless == FOR_SOME.keys():
        needless |= ASKED_FOR.difference(item._fixtureinfo.argnames)
    item.fixturenames = [name for name in item.fixturenames if name not in needless]


def pytest_collection(session: pytest.Session) -> None:
    """Record the sites before test modules create theirs, and freeze existing objects."""
    _sites.update(all_sites)
    if hasattr(session.config, "workerinput") and ALL_FILES in os.environ:
        compile_share(session.config)
    gc.freeze()


def compile_share(config: Any) -> None:
    """Compile this worker's share of the test modules, unless they are compiled.

    All workers import the modules in the same order: each of them compiled each module, beside the others.
    """
    number, workers = int(config.workerinput["workerid"].removeprefix("gw")), config.workerinput["workercount"]
    for path in sorted((ROOT / "tests").rglob("test_*.py"))[number::workers]:
        folder = rewrite.get_cache_dir(path)
        compiled = folder / f"{path.stem}{rewrite.PYC_TAIL}"
        if not compiled.exists() and rewrite.try_makedirs(folder):
            source_hash, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, compiled)


def forget_sites() -> None:
    """Make the checks ignore all sites except the project's."""
    for site in {*all_sites} - _sites:
        all_sites.discard(site)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a worker, report only useful events: the call of a passed test, without its start and end.

    A message of each step to the process that prints them took the two of them a fortieth of the time.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > SLOW_FIXTURE:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the seed of the cases that this run chose."""
    terminalreporter.write_line(f"Cases are those of TEST_SEED={SEED}.")


@pytest.fixture(autouse=True, scope="module")
def state_of_one_module() -> Iterator[None]:
    """Restore the sites and settings that a module's tests change.

    Settings that are restored in another order leave a table behind, whose errors would appear in another module.
    """
    declared = set(project_settings.DYNAMO_SINGLE)
    yield
    forget_sites()
    assert set(project_settings.DYNAMO_SINGLE) == declared, "A test of this module left the settings of a table behind."


def pytest_collection_finish() -> None:
    """Freeze the collected objects for the garbage collector."""
    forget_sites()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> Iterator[None]:
    """pytest looks for errors in unreferenced objects twice, and Python again: once is enough.

    In a worker, no search is needed, since its results have been sent.
    """
    if hasattr(config, "workerinput"):
        gc.freeze()
    yield
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_setup() -> NoReturn:
    """Refuse a test database: it would guard the tables of every later test of this worker."""
    pytest.fail("These tests have tables of their own: use the fixture `table` instead of pytest-django's.")


@pytest.fixture(scope="session")
def engine() -> Iterator[Table]:
    """A local engine, in memory, and ``DYNAMO_SINGLE`` pointing at it until the session ends."""
    chosen = next((each for each in available_engines(ROOT) if each.name == ENGINE), None)
    assert chosen is not None, f"{ENGINE} is not installed: `make test` installs Dynoxide."
    count_changes()
    with local_engine(engine=chosen) as table:
        if not IS_STRICT:
            yield table
            return
        with in_front_of(table):
            yield get_table()


@pytest.fixture
def table(engine: Table) -> Table:
    """The default table, set up and empty."""
    return table_ready()


@pytest.fixture
def sent(table: Table) -> Iterator[list[SentRequest]]:
    """The requests that the test sends, after its table is ready."""
    with capture_requests() as requests:
        yield requests
