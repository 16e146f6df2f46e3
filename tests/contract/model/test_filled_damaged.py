"""A damaged state: models without migrations work as before, and everything else names the item."""

from __future__ import annotations

import time
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import call_command
from django.test import Client

from dynamo_single.contrib.table_admin import health
from dynamo_single.exceptions import UnexpectedItem
from dynamo_single.orm.rollout import knowledge, states
from dynamo_single.table import Request, Table
from tests.catalog.clubs import Club
from tests.contract.conftest import Pages, text_of
from tests.contract.damage import damages, store
from tests.contract.model.test_filled import FORM, LAYOUT, MIGRATED

NAMED = "Cannot read the table's state from the item MIGRATIONS / #STATE"
#: Attributes of the state item that need not be there.
OPTIONAL = ("owner", "shards", "moved", "movedAt", "lease", "fences", "fencedSince")
USER = {"username": "ann", "email": "ann@example.com", "password": "secret-9"}


@pytest.fixture
def state(table: Table, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Return the state of a project's table outside tests."""
    settings.MIGRATION_MODULES = MIGRATED
    knowledge.change(table, lambda found: found.with_form(LAYOUT.item_type, FORM))
    monkeypatch.setattr(table, "replaced", 0)
    key = dict(zip(("pk", "sk"), ({"S": each} for each in states.STATE_KEY), strict=True))
    item: dict[str, Any] = table.send(Request("GetItem", {"Key": key}))["Item"]
    item |= {"owner": {"S": "tests"}, "shards": {"S": "{}"}}
    store(table, item)
    knowledge.forget()
    yield item
    knowledge.forget()


def states_of(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return each damaged state: optional attributes are only damaged by a wrong type."""
    for what, damaged in damages(item, leave=("itemType",)):
        if what not in {*(f"without {name}" for name in OPTIONAL)}:
            yield what, damaged
    yield "schema no JSON", {**item, "schema": {"S": "damaged"}}
    yield "shards no JSON", {**item, "shards": {"S": "damaged"}}


def test_login_and_page_go_on(state: dict[str, Any], table: Table, settings: Any, caplog: Any) -> None:
    """Users and sessions have no migrations, and the log names the item."""
    settings.ROOT_URLCONF = "project.urls"
    user = get_user_model()._default_manager.create_user(**USER)
    for what, damaged in states_of(state):
        store(table, damaged)
        knowledge.forget()
        caplog.clear()
        client = Client()
        assert (what, authenticate(username="ann", password="secret-9")) == (what, user)
        client.post("/accounts/login/", {"username": "ann", "password": "secret-9"})
        assert (what, client.get("/accounts/").status_code) == (what, 200)
        assert NAMED in caplog.text


def test_log_names_it_once_a_reading(state: dict[str, Any], table: Table, caplog: Any) -> None:
    """And not with each request."""
    store(table, {**state, "schema": {"N": "7"}})
    knowledge.forget()
    users: Any = get_user_model()
    for _ in range(5):
        users.objects.filter(pk="nobody").first()
    assert caplog.text.count(NAMED) == 1


def test_models_with_migrations_name_it(state: dict[str, Any], table: Table) -> None:
    """The complete keys are unknown. A restored state is read again without a restart."""
    for what, damaged in states_of(state):
        store(table, damaged)
        knowledge.forget()
        with pytest.raises(UnexpectedItem, match=f"{NAMED}.*restore it from a backup"):
            Club.objects.filter(pk="c").first()
        assert what
    store(table, state)
    later = time.monotonic() + knowledge.REFUSED_REFRESH + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: later)
        assert Club.objects.filter(pk="c").first() is None


def test_status_names_it(state: dict[str, Any], table: Table) -> None:
    """The command still shows everything else."""
    for what, damaged in states_of(state):
        store(table, damaged)
        knowledge.forget()
        said = StringIO()
        call_command("dynamo_status", stdout=said)
        assert (what, NAMED in said.getvalue()) == (what, True)
        assert "Billing" in said.getvalue()


def test_changing_it_is_refused(state: dict[str, Any], table: Table) -> None:
    """A damaged state is not overwritten."""
    for _, damaged in states_of(state):
        store(table, damaged)
        with pytest.raises(UnexpectedItem, match=NAMED):
            knowledge.change(table, lambda found: found.with_form("Other", FORM))


def test_health_page_names_it(
    pages: Pages, state: dict[str, Any], table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "unapplied", list)
    for what, damaged in states_of(state):
        store(table, damaged)
        knowledge.forget()
        shown = pages.get("dynamodb/health/")
        assert (what, NAMED in text_of(shown)) == (what, True)


def test_shards_of_a_later_release_are_not_passed_over(state: dict[str, Any], table: Table) -> None:
    """Later code may have divided any model's items, so that reading them without would miss some."""
    store(table, {**state, "shards": {"S": '{"User": {"layers": 2}}'}})
    knowledge.forget()
    users: Any = get_user_model()
    with pytest.raises(UnexpectedItem, match="use that release"):
        users.objects.filter(pk="nobody").first()
