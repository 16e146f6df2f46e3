"""A write to DynamoDB within an SQL transaction logs one warning per line, or raises an error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections, transaction
from django.test import override_settings

from dynamo_single import transactions
from dynamo_single.backend import sql_transactions
from dynamo_single.exceptions import ConfigurationError, NotRolledBack
from dynamo_single.sessions import SessionStore
from project.directory.models import Company
from tests.contract.sqlite import ALIAS, sqlite

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture(autouse=True)
def connection(django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Add an SQL database, which the tests' settings lack."""
    base = sql_transactions.BaseDatabaseWrapper
    monkeypatch.setattr(base, "set_autocommit", base.set_autocommit)
    monkeypatch.setattr(sql_transactions, "_logged", set())
    sql_transactions.install()
    with django_db_blocker.unblock(), sqlite() as found:
        yield found


@pytest.fixture
def told() -> Iterator[list[str]]:
    """Return the log's messages."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    sql_transactions.logger.addHandler(handler)
    yield messages
    sql_transactions.logger.removeHandler(handler)


def write(name: str) -> None:
    Company.objects.create(company_id=name, name=name)


def line_of(code: str) -> str:
    """Return the position of code in this file, as in the start of a message."""
    before, _, _ = Path(__file__).read_text().partition(code)
    return f"{__file__}:{before.count(chr(10)) + 1}"


def test_each_line_is_logged_once(told: list[str]) -> None:
    for number in range(3):
        with transaction.atomic(using=ALIAS):
            write(f"a{number}")
    with transaction.atomic(using=ALIAS):
        Company.objects.create(company_id="b", name="b")
    asked = "PutItem within a transaction of the SQL database 'reference'"
    assert [message.startswith(__file__) and asked in message for message in told] == [True, True]


def test_nothing_is_logged_outside_and_after_the_commit(told: list[str]) -> None:
    """Callbacks of the commit write after it; reads do not count."""
    write("before")
    with transaction.atomic(using=ALIAS):
        list(Company.objects.all())
        transaction.on_commit(lambda: write("waits"), using=ALIAS)
    write("after")
    assert (told, Company.objects.count()) == ([], 3)


def test_block_of_ours_is_logged_by_its_own_line(told: list[str]) -> None:
    """DynamoDB receives the block at its end."""
    with transaction.atomic(using=ALIAS), transactions.atomic():
        write("a")
        write("b")
    assert len(told) == 1
    assert "TransactWriteItems" in told[0]


def test_many_writes_in_threads_are_logged_by_the_calling_line(told: list[str]) -> None:
    """Once, although the caller's own thread writes some of them."""
    for block in range(3):
        companies = [Company(company_id=f"c{block}{number:02}", name="c") for number in range(60)]
        with transaction.atomic(using=ALIAS):
            Company.objects.bulk_create(companies)
    assert [message.partition(": ")[0] for message in told] == [line_of("bulk_create(companies)")]


def test_each_line_of_a_servers_thread_is_logged(told: list[str]) -> None:
    """A server runs a request in a thread, whose stack begins like a pool's stack."""

    def request() -> None:
        with transaction.atomic(using=ALIAS):
            Company.objects.create(company_id="a", name="a")
            Company.objects.create(company_id="b", name="b")
        connections[ALIAS].close()

    thread = Thread(target=copy_context().run, args=(request,))
    thread.start()
    thread.join()
    lines = [line_of('create(company_id="a"'), line_of('create(company_id="b", name="b")\n        connections')]
    assert [message.partition(": ")[0] for message in told] == lines


@override_settings(DYNAMO_SINGLE_SQL_TRANSACTIONS="error")
def test_setting_refuses_the_write() -> None:
    with pytest.raises(NotRolledBack, match=r"Nothing was written\.$"), transaction.atomic(using=ALIAS):
        write("a")
    assert not Company.objects.exists()


@override_settings(DYNAMO_SINGLE_SQL_TRANSACTIONS="error")
def test_own_sessions_commands_and_test_cases_are_exempt(told: list[str]) -> None:
    write("a")
    with transaction.atomic(using=ALIAS):
        session = SessionStore()
        session["key"] = "value"
        session.save()
        call_command("dynamo_rebuild", "directory.Company", verbosity=0)
    case = transaction.atomic(using=ALIAS)
    case._from_testcase = True
    with case, transaction.atomic(using=ALIAS):
        write("b")
    assert told == []


def test_wrong_setting_is_refused() -> None:
    with (
        override_settings(DYNAMO_SINGLE_SQL_TRANSACTIONS="silent"),
        pytest.raises(ConfigurationError, match="'warn' or 'error'"),
        transaction.atomic(using=ALIAS),
    ):
        write("a")
