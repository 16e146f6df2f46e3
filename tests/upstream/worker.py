"""Run one app of Django's tests in this process with Django's own runner, and write the outcomes as JSON.

``python -m tests.upstream.worker APP OUTPUT``
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import call_command

from tests.upstream import features, loader, source, statements
from tests.upstream.catalogue import APPS, CONTRIB

SIMPLE_ADMIN = "django.contrib.admin.apps.SimpleAdminConfig"


class Result(unittest.TextTestResult):
    """The outcome of each test; a test with a failed subtest has failed."""

    outcomes: dict[str, dict[str, Any]]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outcomes = {}
        self.started: set[str] = set()

    def startTest(self, test: Any) -> None:
        """The test could be set up."""
        super().startTest(test)
        statements.asserted.clear()
        self.started.add(test.id())

    def stopTest(self, test: Any) -> None:
        """The numbers of queries that the test asserted are kept."""
        super().stopTest(test)
        if statements.asserted and test.id() in self.outcomes:
            self.outcomes[test.id()]["queries"] = [*statements.asserted]

    def addSuccess(self, test: Any) -> None:
        """The test passed, unless a part of it failed."""
        super().addSuccess(test)
        self.outcomes.setdefault(test.id(), {"outcome": "passed"})

    def addSkip(self, test: Any, reason: str) -> None:
        """The test was not run."""
        super().addSkip(test, reason)
        self.outcomes.setdefault(test.id(), {"outcome": "skipped", "why": reason})

    def addError(self, test: Any, err: Any) -> None:
        """The test raised an error."""
        super().addError(test, err)
        self._failed(test, err)

    def addFailure(self, test: Any, err: Any) -> None:
        """The test found something else than it expected."""
        super().addFailure(test, err)
        self._failed(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        """A part of a test ended."""
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed(test, err)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        """Upstream expects the test to fail on a database such as ours, and it did."""
        super().addExpectedFailure(test, err)
        self.outcomes[test.id()] = {"outcome": "skipped", "why": "upstream expects it to fail"}

    def addUnexpectedSuccess(self, test: Any) -> None:
        """Upstream expects the test to fail, and it passed."""
        super().addUnexpectedSuccess(test)
        self.outcomes[test.id()] = {"outcome": "passed"}

    def _failed(self, test: Any, err: Any) -> None:
        if test.id() not in self.started:
            # Django does not clean up after a failed set-up, whose objects would be in the table during the next test.
            call_command("flush", interactive=False, verbosity=0)
        text = "".join(traceback.format_exception(*err))
        self.outcomes[test.id()] = {"outcome": "failed", "error": f"{err[0].__name__}: {err[1]}", "traceback": text}


def tests_of(suite: Any) -> Iterator[Any]:
    """The single tests of a suite."""
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from tests_of(each)
        elif each is not None:
            yield each


def run(app: str) -> dict[str, dict[str, Any]]:
    """Run the tests of an app, and return the outcome of each."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.upstream.settings"
    os.environ["RUNNING_DJANGOS_TEST_SUITE"] = "true"
    folder = source.tests_folder()
    is_admin = APPS[app].admin
    loader.install(folder, [*CONTRIB, *([app] if APPS[app].converted else [])], [app] if is_admin else [])
    os.chdir(folder)
    import django
    from django.conf import settings

    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, app]
    if is_admin:
        ported = {SIMPLE_ADMIN: "tests.upstream.admin_app.SimpleDynamoAdminConfig"}
        settings.INSTALLED_APPS = [ported.get(each, each) for each in settings.INSTALLED_APPS]
        settings.AUTHENTICATION_BACKENDS = ["tests.upstream.stock.permissions.Backend"]
    settings.TEMPLATES[0]["DIRS"] = [folder / "templates"]
    django.setup()
    from tests.upstream.stock import places

    places.take()
    features.take()
    statements.install()
    from django.test.runner import DiscoverRunner
    from django.utils.module_loading import import_string

    class Runner(DiscoverRunner):
        """Django's runner, with our account of the tests; the checks of our own models are no part of them."""

        def get_resultclass(self) -> Any:
            return Result

        def build_suite(self, *args: Any, **options: Any) -> Any:
            suite = super().build_suite(*args, **options)
            for path in APPS[app].left_out:
                case, _, method = path.rpartition(".")
                setattr(import_string(case), method, lambda self: None)
            self.known = [test.id() for test in tests_of(suite)]
            return suite

        def run_checks(self, databases: Any) -> None:
            pass

        def suite_result(self, suite: Any, result: Any, **options: Any) -> Any:
            self.outcomes = result.outcomes
            return super().suite_result(suite, result, **options)

    runner = Runner(verbosity=0, interactive=False)
    runner.run_tests([app])
    outcomes = {name: outcome for name, outcome in runner.outcomes.items() if name in runner.known}
    stopped = [outcome for name, outcome in runner.outcomes.items() if name not in runner.known]
    for name in runner.known:
        # A failed set-up of a class or a module prevents its tests from running.
        outcomes.setdefault(name, stopped[0] if stopped else {"outcome": "skipped", "why": "not run"})
    # A module that could not be imported is one failure, under the module's name.
    return {name.removeprefix("unittest.loader._FailedTest."): outcome for name, outcome in outcomes.items()}


if __name__ == "__main__":
    # As runtests.py has it; -W keeps unittest from setting filters of its own.
    warnings.simplefilter("error", RuntimeWarning)
    outcomes = run(sys.argv[1])
    Path(sys.argv[2]).write_text(json.dumps(outcomes, indent=1, sort_keys=True))
