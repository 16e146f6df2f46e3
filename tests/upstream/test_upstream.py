"""Exactly the listed ones of Django's own tests fail, for documented reasons."""

from __future__ import annotations

import ast

import pytest

from tests.deep import deep
from tests.upstream import expectations, loader, run
from tests.upstream.catalogue import APPS
from tests.upstream.proposals import PROPOSALS

#: How many of Django's tests do not pass yet.
NOT_YET = 662
LISTED = expectations.read(expectations.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "app",
    [
        *("basic", "modeladmin"),
        *(pytest.param(app, marks=deep) for app in ("get_or_create", "lookup", "ordering", "admin_ordering")),
    ],
)
def test_a_fast_app_fails_where_the_list_says_so_and_nowhere_else(app: str) -> None:
    """`make test-django` runs the other apps."""
    assert APPS[app].fast
    assert run.compare(run.run([app]), LISTED, [app]) == []


def test_every_reason_is_one_of_three() -> None:
    """SQL itself, or a decision that is there, each with a line of the limitations; or not yet."""
    reasons = LISTED.counts()
    assert [reason for reason in reasons if not expectations.is_reason(reason)] == []
    assert {line for reason in reasons if (line := expectations.line_of(reason))} <= expectations.lines_of_limitations()


def test_what_is_not_done_yet_only_becomes_less() -> None:
    """Lower the number with each repair."""
    assert LISTED.counts()[expectations.NOT_YET] <= NOT_YET


def test_no_reason_has_more_tests_than_it_may() -> None:
    """The limit in the list only falls."""
    assert LISTED.grown() == []


def test_the_list_is_written_as_it_is_read() -> None:
    """The order and the head are fixed, so that a diff shows only real changes."""
    assert expectations.write(LISTED, LISTED.counts()) == expectations.FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("written", "loaded"),
    [
        ("from django.db import models", "from tests.upstream import converted as models"),
        (
            "from django.db import connection, models",
            "from django.db import connection\nfrom tests.upstream import converted as models",
        ),
        ("from django.db.models import F, CharField", "from tests.upstream.converted import F, CharField"),
        ("from .fields import Own", "from .fields import Own"),
    ],
)
def test_imports_of_models_are_replaced_and_no_others(written: str, loaded: str) -> None:
    """The rest of a module is loaded as it is."""
    assert ast.unparse(loader.Imports().visit(ast.parse(written))) == loaded


def test_the_modules_of_an_app_of_the_admin_are_given_our_admin() -> None:
    """Whichever of Django's modules they import it from."""
    written = "from django.contrib import admin, messages\nfrom django.contrib.admin.models import LogEntry"
    loaded = ast.unparse(loader.Imports(loader.REPLACED_IN_ADMINS).visit(ast.parse(written)))
    assert loaded.splitlines() == [
        "from django.contrib import messages",
        "from tests.upstream.stock import admins as admin",
        "from tests.upstream.stock.admins import LogEntry",
    ]


def test_failures_are_proposed_for_lines_that_are_there() -> None:
    """A removed line of the limitations must not have proposals."""
    reasons = {reason for _, reason in PROPOSALS}
    assert {expectations.line_of(reason) for reason in reasons} <= expectations.lines_of_limitations()
    assert all(map(expectations.is_reason, reasons))
