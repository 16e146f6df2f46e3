"""Secrets in a fixture: ``dumpdata`` writes and reports them, and omits them on request."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from dynamo_single.table import Table
from tests.catalog.safes import INSIDE, VALUES, Lock, Safe, told
from tests.contract.tables import everything


def dumped(*labels: str, **options: Any) -> tuple[str, str]:
    """Return the fixture, and the text on standard error."""
    output, errors = StringIO(), StringIO()
    call_command("dumpdata", *labels, stdout=output, stderr=errors, **options)
    return output.getvalue(), errors.getvalue()


@pytest.fixture
def safe(table: Table) -> Safe:
    """Create a safe with every secret that a fixture can contain, and a lock."""
    values = {name: value for name, value in VALUES.items() if name != "blobs"}
    found: Safe = Safe.objects.create(safe_id="s1", name="Front", **values, **INSIDE)
    Lock.objects.create(safe=found, lock_id="l1", brand="Best", code="swordfish-code")
    return found


def test_dump_is_complete(safe: Safe, table: Table) -> None:
    before = everything(table)
    fixture, _errors = dumped("catalog.Safe", "catalog.Lock")
    for obj in (*Lock.objects.all().allow_scan(), *Safe.objects.all()):
        obj.delete()
    load(fixture)

    assert everything(table) == before


def load(fixture: str) -> None:
    """Load a fixture from its text."""
    from django.core import serializers

    for each in serializers.deserialize("json", fixture):
        each.save()


def test_dump_names_secrets_on_standard_error(safe: Safe) -> None:
    _fixture, errors = dumped("catalog.Safe", "catalog.Lock")

    assert "catalog.Safe: text, pin, email, " in errors
    assert "papers (in part), contents (in part), remark (in part)" in errors
    assert "catalog.Lock: code" in errors
    assert "--without-secrets" in errors
    assert told(errors) == []


def test_dump_without_secrets_tells_none(safe: Safe) -> None:
    fixture, errors = dumped("catalog.Safe", "catalog.Lock", without_secrets=True)

    assert told(fixture) == []
    assert "Left out as secrets: " in errors
    assert "catalog.Lock: code" in errors


def test_dump_without_secrets_keeps_rest(safe: Safe) -> None:
    fixture, _errors = dumped("catalog.Safe", without_secrets=True)
    (found,) = json.loads(fixture)

    assert found["pk"] == "s1"
    assert found["fields"] == {
        "name": "Front",
        "papers": {"author": "Ann", "deep": [{}]},
        "contents": {"label": "Gold"},
        "remark": 'from the log: {"user": "ann", "password": "•••"}',
    } | {name: value for name, value in found["fields"].items() if name == "safe_id"}


def test_dump_without_secrets_can_be_loaded(safe: Safe) -> None:
    fixture, _errors = dumped("catalog.Safe", without_secrets=True)
    safe.delete()
    load(fixture)
    stored = Safe.objects.get(pk="s1")

    assert (stored.name, stored.text, stored.papers) == ("Front", None, {"author": "Ann", "deep": [{}]})


def test_next_dump_has_secrets_again(safe: Safe) -> None:
    dumped("catalog.Safe", without_secrets=True)
    with pytest.raises(CommandError):
        dumped("catalog.Nothing", without_secrets=True)

    assert '"swordfish-text"' in dumped("catalog.Safe")[0]


def test_dump_without_secrets_says_nothing_of_none(table: Table) -> None:
    Safe.objects.create(safe_id="s2", name="Back")

    assert dumped("catalog.Safe")[1] == dumped("catalog.Safe", without_secrets=True)[1] == ""


def test_users_are_dumped_without_passwords(table: Table) -> None:
    User.objects.create_user("Ann", "ann@example.com", "a-good-password")
    complete, errors = dumped("accounts.User")
    without, _errors = dumped("accounts.User", without_secrets=True)

    assert "accounts.User: password" in errors
    assert ("password" in complete, "password" in without) == (True, False)


def test_users_without_passwords_can_be_loaded(table: Table) -> None:
    ann = User.objects.create_user("Ann", "ann@example.com", "a-good-password")
    without, _errors = dumped("accounts.User", without_secrets=True)
    ann.delete()
    load(without)

    assert not User.objects.get(username="Ann").check_password("a-good-password")
