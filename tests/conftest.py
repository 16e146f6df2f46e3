"""What the tests share: one engine for each worker, and an empty table for each test that asks for one."""

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
from _pytest.runner import runtestprotocol
from django.conf import settings as project_settings
from django.contrib.admin.sites import AdminSite, all_sites
from django.urls import resolvers
from hypothesis import HealthCheck, settings

from dynamo_single.engines import DYNOXIDE, available_engines
from dynamo_single.table import SentRequest, Table, capture_requests, get_table, redirects
from dynamo_single.testing import local_engine
from tests import children
from tests.deep import IS_DEEP, SEED, beyond_sample, examples
from tests.ready import count_changes, table_ready
from tests.strict import IS_STRICT, in_front_of

# Some machines forbid Python to keep what it compiled: every process of the tests would compile Django again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# These tests run engines, proxies and faulty servers of their own, and their processes are to reach them.
os.environ.setdefault(redirects.VARIABLE, redirects.UNGUARDED)
redirects.inherit()

# What a test makes is freed without the garbage collector, but for some cycles. To look at everything that is there,
# which grows with every test, took it a tenth of the time; to look at what a test still works with, a twentieth.
gc.set_threshold(200_000, 20, 20)

# With each other ROOT_URLCONF Django works all addresses out again. What a pattern means stays, and takes half of that.
resolvers.normalize = cache(resolvers.normalize)

# Timings are no matter of tests: another process may take the processor meanwhile. What a function's fixtures make is
# the same for all examples of a property, which begin by emptying it. A property without a number of its own is tried
# with 10 examples; in a deep run with 200, which is twice what Hypothesis takes.
settings.register_profile(
    "tests",
    deadline=None,
    max_examples=examples(10, 200),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tests")

ROOT = Path(__file__).resolve().parent.parent
#: ``TEST_ENGINE="DynamoDB Local"`` runs the same tests on the stricter engine.
ENGINE = os.environ.get("TEST_ENGINE", DYNOXIDE)

#: Set in the processes of a run that names no files: it draws some cases of tests that have many.
ALL_FILES = "TEST_ALL_FILES"

#: Folders whose tests take longest: begun first, so that no worker waits for the last of them.
FIRST = ("tests/upstream", "tests/benchmarks", "tests/helpdesk")


#: Fixtures of pytest-django that every test asks for, each with the mark or fixture without which it does nothing.
FOR_SOME = {
    "_django_db_marker": "django_db",
    "_django_set_urlconf": "urls",
    "_django_isolate_apps": "django_isolate_apps",
    "_template_string_if_invalid_marker": "ignore_template_errors",
    "_live_server_helper": "live_server",
}
#: What these ask for themselves. A test's own fixtures get it when they ask.
ASKED_FOR = {"monkeypatch", "request"}

#: What ``--durations`` lists of setting up and tearing down, in seconds.
SLOW_FIXTURE = 0.05

#: The sites of the project. Checks look at all that there are, and those of tests would be theirs.
_sites: set[AdminSite] = set()


def pytest_configure(config: pytest.Config) -> None:
    """Name our marks, and let all workers have their children forked by one server."""
    config.addinivalue_line("markers", "deep: run by `make test-deep` only")
    if config.args_source == pytest.Config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput"):
        os.environ[ALL_FILES] = "1"
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        os.environ[children.SERVER] = children.address()
    if hasattr(config, "workerinput"):
        atexit.register(end_worker)


def end_worker() -> NoReturn:
    """End this process as Python does, but for taking apart all that there is: that took each worker a second or two.

    It is called after what was registered later. What was registered before are the two that are called here.
    """
    weakref.finalize._exitfunc()  # type: ignore[attr-defined]
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # what xdist waits for is that the process ends: its result has been sent


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make no test of a case that only a deep run asks for, if there are others.

    Such tests were a twelfth of all, and every worker made them.
    """
    if IS_DEEP:
        return
    marks = metafunc.definition.own_markers
    for place, mark in enumerate(marks):
        if mark.name != "parametrize" or not isinstance(mark.args[1], list):  # an iterator can be asked once
            continue
        usual = [each for each in mark.args[1] if not _is_deep(each)]
        if 0 < len(usual) < len(mark.args[1]):
            marks[place] = pytest.mark.parametrize(mark.args[0], usual, *mark.args[2:], **mark.kwargs).mark


def _is_deep(case: object) -> bool:
    return any(mark.name == "deep" for mark in getattr(case, "marks", ()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only a deep run asks for, and begin with what takes longest."""
    left_out = [] if IS_DEEP else [item for item in items if item.get_closest_marker("deep")]
    if ALL_FILES in os.environ and not IS_DEEP:
        left_out += beyond_sample([item for item in items if item.get_closest_marker("deep") is None], SEED)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        skipped = {*left_out}
        items[:] = [item for item in items if item not in skipped]
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    for item in items:
        leave_out_fixtures(item)


def leave_out_fixtures(item: Any) -> None:
    """Let a test do without the fixtures of pytest-django that would do nothing: a seventh of a short test."""
    has = {mark.name for mark in item.iter_markers()}.union(item.fixturenames)
    needless = {name for name, wanted in FOR_SOME.items() if wanted not in has}
    if needless == FOR_SOME.keys():
        needless |= ASKED_FOR.difference(item._fixtureinfo.argnames)
    item.fixturenames = [name for name in item.fixturenames if name not in needless]


def pytest_collection() -> None:
    """Remember which sites there are before modules of tests make theirs, and that what there is by now stays."""
    _sites.update(all_sites)
    gc.freeze()


def forget_sites() -> None:
    """Let the checks know no sites but the project's."""
    for site in {*all_sites} - _sites:
        all_sites.discard(site)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a worker, report what can be read somewhere: of a test that passes the call, and not that it began and ended.

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
    """What a module's tests make of sites and settings is not the next one's.

    Settings that are restored in another order than they were changed in leave a table behind, whose errors would
    appear in tests of another module.
    """
    declared = set(project_settings.DYNAMO_SINGLE)
    yield
    forget_sites()
    assert set(project_settings.DYNAMO_SINGLE) == declared, "A test of this module left the settings of a table behind."


def pytest_collection_finish() -> None:
    """What was collected stays: the garbage collector need not look at it again and again."""
    forget_sites()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> Iterator[None]:
    """pytest looks for errors in what nobody refers to any more. It does so twice, and Python again: once is enough.

    In a worker not once: nobody hears of what is found there, since its result has been sent by then.
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
