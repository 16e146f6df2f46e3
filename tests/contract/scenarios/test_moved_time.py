"""A moved or stopped clock on the real engine: all stored and compared times follow it.

The tests do not wait, and move only the app's clock.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Max
from django.db.utils import ConnectionHandler
from django.test import Client, RequestFactory, override_settings
from django.utils import timezone

from accounts.models import LoginFailures, User
from dynamo_single import cached_sessions, clock, counters, models, sessions
from dynamo_single.exceptions import UniqueViolation
from dynamo_single.testing import FrozenTime, assert_requests, frozen_time, moved_time
from project.directory.models import Company
from tests.catalog.clubs import Draft
from tests.catalog.models import Coupon, Ticket
from tests.contract.accounts.account_pages import PASSWORD, link, log_in, sign_up, void
from tests.contract.caching import cache_of
from tests.unit.declaring import declare, forgotten

pytestmark = [pytest.mark.usefixtures("table"), pytest.mark.urls("project.urls")]

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def stopped() -> Any:
    """Stop the clock at noon of a future day."""
    with frozen_time(NOON) as frozen:
        yield frozen


def test_an_object_expires(stopped: FrozenTime) -> None:
    """Starting with its last second, keys, indexes and pages exclude it."""
    for number in range(4):
        Ticket.objects.create(code=f"t{number}", expires_at=NOON + DAY if number == 3 else None)
    page = Ticket.objects.page(2)
    stopped.move(DAY - SECOND)
    assert Ticket.objects.filter(pk="t3").exists()
    assert [each.code for each in Ticket.objects.page(2, page.next_cursor)] == ["t2", "t3"]
    stopped.move(SECOND)
    assert not Ticket.objects.filter(pk="t3").exists()
    assert [each.code for each in Ticket.objects.page(2, page.next_cursor)] == ["t2"]
    assert Ticket.objects.count() == 3
    assert Ticket.objects.aggregate(last=Max("code")) == {"last": "t2"}


def test_a_unique_value_is_free_once_its_owner_expired() -> None:
    """Before that, another object cannot take it; afterwards, the value and the key are free."""
    Coupon.objects.create(code="c", email="a@example.org", expires_at=timezone.now() + DAY)
    with pytest.raises(UniqueViolation):
        Coupon.objects.create(code="d", email="a@example.org")
    with moved_time(DAY + SECOND):
        Coupon.objects.create(code="d", email="a@example.org")
        Coupon.objects.create(code="c", email="b@example.org")


def test_what_a_save_notes_of_the_time(stopped: FrozenTime) -> None:
    """This includes ``auto_now_add`` and ``auto_now`` of datetimes and dates, and the trash."""
    with forgotten():
        diary = declare(
            "Diary",
            ("DIARY#{code}", "#METADATA"),
            code=models.UnicodeAttribute(),
            text=models.UnicodeAttribute(null=True),
            begun=models.DateAttribute(auto_now_add=True),
            continued=models.DateAttribute(auto_now=True),
            hour=models.TimeAttribute(auto_now_add=True),
        )
        made = diary.objects.create(code="d")
        company = Company.objects.create(name="Acme")
        stopped.move(DAY)
        made.text = company.name = "changed"
        made.save()
        company.save()
        found = diary.objects.get(pk="d")
    assert (found.begun, found.continued) == (date(2030, 1, 31), date(2030, 2, 1))
    assert found.hour == clock.time_of_day()
    assert (company.created_at, company.updated_at) == (NOON, NOON + DAY)
    stopped.move(DAY)
    company.delete()
    assert Company.deleted_objects.get().deleted_at == NOON + 2 * DAY
    draft = Draft.objects.create(draft_id="d", title="t")
    draft.delete()
    stopped.move(31 * DAY)
    assert not Draft.deleted_objects.exists()


def test_a_counter_that_expired_begins_anew(stopped: FrozenTime) -> None:
    """By the same clock as everything else."""

    def count() -> int:
        more = LoginFailures(scope="a", failures=1, last_failure=clock.now(), expires=clock.now() + DAY)
        return counters.add(more, "failures").failures

    assert [count(), count()] == [1, 2]
    stopped.move(DAY)
    assert count() == 1


@pytest.mark.parametrize("timeout", [60, None])
def test_an_entry_of_the_cache_ends(stopped: FrozenTime, timeout: int | None) -> None:
    """By its timeout, by any method that looks; without one it stays."""
    with cache_of(TIMEOUT=timeout) as cache:
        cache.set("key", 1)
        stopped.move(59 * SECOND)
        assert cache.get("key") == 1
        stopped.move(SECOND)
        assert cache.get("key") == (None if timeout else 1)
        assert cache.add("key", 2) is bool(timeout)


@pytest.mark.parametrize("engine", [sessions, cached_sessions])
def test_a_session_ends(stopped: FrozenTime, engine: Any) -> None:
    """The cookie's age or the session's own expiry, in any form, ends it; its age counts down."""
    cache = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": f"moved-{id(stopped)}"}
    with override_settings(CACHES={"default": cache}, SESSION_COOKIE_AGE=100):
        for expiry in (None, 100, timedelta(seconds=100), NOON + 100 * SECOND):
            store = engine.SessionStore()
            store["colour"] = "green"
            store.set_expiry(expiry)
            store.save()
            assert store.get_expiry_date() == NOON + 100 * SECOND
            assert store.get_expiry_age() == 100
            assert engine.SessionStore(store.session_key).load()
            with moved_time(99 * SECOND):
                assert engine.SessionStore(store.session_key).load()["colour"] == "green"
            with moved_time(100 * SECOND):
                assert engine.SessionStore(store.session_key).load() == {}


def test_the_asynchronous_methods_of_a_session(stopped: FrozenTime) -> None:
    """They count from the same present."""

    async def expiry() -> tuple[Any, ...]:
        store = sessions.SessionStore()
        await store.aset_expiry(timedelta(seconds=100))
        stopped.move(10 * SECOND)
        return await store.aget_expiry_date(), await store.aget_expiry_age(), store.get_expiry_age(modification=NOON)

    assert asyncio.run(expiry()) == (NOON + 100 * SECOND, 90, 100)


def test_a_visitor_is_logged_out(stopped: FrozenTime) -> None:
    """When the session ends, on the site."""
    User.objects.create_user("Mike", "user1@example.com", PASSWORD)
    client = Client()
    assert log_in(client, "Mike").status_code == 302
    assert client.get("/accounts/").status_code == 200
    stopped.move(15 * DAY)
    assert client.get("/accounts/").status_code == 302


def test_a_link_that_confirms_an_address_expires(client: Client, mailoutbox: Any) -> None:
    """The link expires after exactly CONFIRMATION_LIFETIME (three days)."""
    sign_up(client)
    with moved_time(3 * DAY + 2 * SECOND):
        assert void(client, link(mailoutbox[0]))
    with moved_time(3 * DAY - 60 * SECOND):
        assert not void(client, link(mailoutbox[0]))
        assert abs(User.objects.get().confirmed_at - timezone.now() - 3 * DAY) < timedelta(minutes=2)


def test_a_link_that_sets_a_password_expires(client: Client, mailoutbox: Any) -> None:
    """The link expires after exactly Django's PASSWORD_RESET_TIMEOUT (three days)."""
    User.objects.create_user("Mike", "user1@example.com", PASSWORD)
    client.post("/accounts/password_reset/", {"email": "user1@example.com"})
    found = re.search(r"http://testserver(/accounts/reset/\S+)", mailoutbox[0].body)
    assert found
    with moved_time(3 * DAY + 2 * SECOND):
        assert client.get(found[1]).status_code == 200
    with moved_time(3 * DAY - 60 * SECOND):
        assert client.get(found[1]).status_code == 302


def test_a_delay_after_wrong_passwords_is_over(stopped: FrozenTime) -> None:
    """The sixth attempt has to wait even with the right password until the clock has moved."""
    User.objects.create_user("Mike", "user1@example.com", PASSWORD)

    def attempt(password: str) -> Any:
        return authenticate(RequestFactory().post("/"), username="Mike", password=password)

    for _ in range(5):
        assert attempt("wrong") is None
    assert attempt(PASSWORD) is None
    stopped.move(4.9 * SECOND)
    assert attempt(PASSWORD) is None
    stopped.move(0.2 * SECOND)
    assert attempt(PASSWORD) is not None


def test_a_project_without_sql_says_when_its_migrations_were_applied(stopped: FrozenTime) -> None:
    """Its backend generates the rows with the current time."""
    recorder = MigrationRecorder(ConnectionHandler({"default": {"ENGINE": "dynamo_single.backend"}})["default"])
    assert {row.applied for row in recorder.applied_migrations().values()} == {NOON}


def test_moving_the_clock_sends_nothing() -> None:
    """The clock belongs to this process."""
    with assert_requests(0), moved_time(DAY), frozen_time():
        pass
