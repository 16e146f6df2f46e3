"""A job in two tabs at once, and one whose process is killed: each object is deleted and logged once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.admin.batch_actions import actions, jobs
from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.admin.log import LogEntry
from dynamo_single.exceptions import StaleObject
from dynamo_single.testing import intercept, moved_time
from project.directory.models import Company
from tests.contract.conftest import Pages, Registering, text_of
from tests.deep import examples

COMPANIES = "directory/company/"
#: After this a batch may be repeated.
LAPSED = timedelta(seconds=61)


class Killed(BaseException):
    """Ends a request as the end of its process does: no code of ours runs after it."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few objects are many."""
    monkeypatch.setattr(actions, "MAX_IMMEDIATE", 1)
    monkeypatch.setattr(jobs, "BATCH_SIZE", 3)
    monkeypatch.setattr(jobs, "MAX_SECONDS", 1000.0)
    yield


def companies(count: int) -> list[str]:
    """The keys of as many."""
    return [Company.objects.create(company_id=f"c{number:03}", name=f"C {number}").pk for number in range(count)]


def job_of(pages: Pages, keys: list[str], action: str = "delete_selected", query: str = "") -> str:
    """Choose an action for objects, and return the path of its job."""
    answer = pages.post(f"{COMPANIES}{query}", {"action": action, "_selected_action": keys})
    return str(answer["location"]).removeprefix("/admin/")


def logged(pages: Pages, flag: int = 3) -> dict[str, int]:
    """Return the number of log entries of a kind for each object."""
    found = LogEntry.objects.filter(user_id=pages.user.pk)
    return dict(Counter(each.object_id for each in found if each.action_flag == flag))


def test_two_tabs_delete_and_log_each_object_once(registered: Registering, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, each with its own connection, post to one job until it is done."""
    monkeypatch.setattr(jobs, "MAX_SECONDS", 0.0)  # a batch for each request, so that both tabs have some
    deleted: list[str] = []

    def delete_model(self: Any, request: Any, obj: Any) -> None:
        deleted.append(obj.pk)
        DynamoModelAdmin.delete_model(self, request, obj)

    pages = registered(Company, delete_model=delete_model)
    keys = companies(examples(24, 200))
    path, together = f"/admin/{job_of(pages, keys)}", Barrier(2)

    def tab() -> int:
        client, posts = Client(headers={"accept": "application/json"}), 0
        client.cookies = pages.client.cookies
        together.wait()
        while posts < 10_000:
            state, posts = client.post(path).json(), posts + 1
            if state["done"] == state["total"]:
                break
        return posts

    with ThreadPoolExecutor(2) as tabs:
        both = [tabs.submit(tab), tabs.submit(tab)]
    assert all(each.result() for each in both)
    assert Counter(deleted) == dict.fromkeys(keys, 1)
    assert logged(pages) == dict.fromkeys(keys, 1)
    assert Company.objects.count() == 0


def test_refused_batch_leaves_what_came_back_unchecked(registered: Registering) -> None:
    """A batch that is refused goes on one by one, with the objects whose permissions it has checked."""
    key, *others = companies(3)

    def delete_queryset(self: Any, request: Any, queryset: Any) -> None:
        if len(queryset) > 1:
            Company.deleted_objects.get(pk=key).restore()
            raise StaleObject("Another process was faster.")
        DynamoModelAdmin.delete_queryset(self, request, queryset)

    def has_delete_permission(self: Any, request: Any, obj: Any = None) -> bool:
        return obj is None or obj.pk != key

    pages = registered(Company, delete_queryset=delete_queryset, has_delete_permission=has_delete_permission)
    path = job_of(pages, [key, *others])
    Company.objects.get(pk=key).delete()
    pages.post(path)
    assert [each.pk for each in Company.objects.all()] == [key]


def test_claimed_batch_is_not_run(pages: Pages) -> None:
    """A claim prevents a second run until it lapses; the page reports that another page is working on the job."""
    path = job_of(pages, companies(4))
    job = AdminJob.objects.get(user_key=str(pages.user.pk))
    with KilledBefore(6):
        pages.post(path)
    assert pages.client.post(f"/admin/{path}", headers={"accept": "application/json"}).json()["claimed"] is True
    assert "Another page is working on this job." in text_of(pages.get(path))
    assert Company.objects.count() == 4
    with moved_time(LAPSED):
        pages.post(path)
    assert Company.objects.count() == 0
    assert AdminJob.objects.get(pk=job.pk).is_done


#: Another user's own actions: the page's address, and the flag of its log entry.
BY_ANOTHER = {
    "delete_selected": ("", "", 3),
    "restore_selected": ("?trash=yes", "restore_selected", 2),
    "purge": ("?trash=yes", "", 3),
}


@pytest.mark.parametrize("action", BY_ANOTHER)
def test_stopped_batch_logs_nothing_of_another_user(pages: Pages, action: str) -> None:
    """The log contains another user's change since the claim once, as theirs."""
    query, restoring, flag = BY_ANOTHER[action]
    keys = companies(3)
    if query:
        for company in Company.objects.filter(pk__in=keys):
            company.delete()
    path = job_of(pages, keys, restoring or "delete_selected", query)
    with KilledBefore(5):  # after it claimed the batch
        pages.post(path)
    assert AdminJob.objects.get(user_key=str(pages.user.pk)).claimed_at is not None
    other = User.objects.create_superuser("other", "other@example.com", "password")
    client = Client()
    client.force_login(other)
    chosen = {"action": restoring or "delete_selected", "_selected_action": keys[:1]}
    client.post(f"/admin/{COMPANIES}{query}", chosen if restoring else {**chosen, "post": "yes"})
    with moved_time(LAPSED):
        pages.post(path)
    theirs = [each.object_id for each in LogEntry.objects.filter(user_id=other.pk) if each.action_flag == flag]
    assert (theirs, logged(pages, flag)) == (keys[:1], dict.fromkeys(keys[1:], 1))


#: Killed before every request, or before every fourth one.
EVERY = examples(4, 1)


class KilledBefore:
    """A block of requests: the process is killed before it sends its ``number``-th one."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.is_killed = False
        self._block = intercept(self._count)

    def _count(self, operation: str, params: Mapping[str, Any]) -> None:
        self._left -= 1
        if self._left == 0:
            raise Killed

    def __enter__(self) -> KilledBefore:
        self._block.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self._block.__exit__(None, None, None)
        self.is_killed = kind is Killed
        return self.is_killed


#: The actions, each with the list that it works on, and the flag of its log entries.
ACTED = {
    "delete_selected": ("", 3),
    "restore_selected": ("?trash=yes", 2),
    "purge": ("?trash=yes", 3),
}


@pytest.mark.parametrize("action", ACTED)
def test_killed_batch_is_repeated_for_what_is_left(pages: Pages, action: str) -> None:
    """Killed before each of its requests in turn: each object is changed, and logged once."""
    query, flag = ACTED[action]
    number, is_killed = 1 - EVERY, True
    while is_killed:
        number += EVERY
        keys = [Company.objects.create(company_id=f"k{number:03}-{each}", name="C").pk for each in range(4)]
        if query:
            for company in Company.objects.filter(pk__in=keys):
                company.delete()
        path = job_of(pages, keys, "delete_selected" if action == "purge" else action, query)
        with KilledBefore(number) as block:
            pages.post(path)
        is_killed = block.is_killed
        with moved_time(LAPSED):
            pages.post(path)
        left = {each.pk for each in Company.all_objects.filter(pk__in=keys)}
        live = {each.pk for each in Company.objects.filter(pk__in=keys)}
        assert (left, live) == {
            "delete_selected": ({*keys}, set()),
            "restore_selected": ({*keys}, {*keys}),
            "purge": (set(), set()),
        }[action]
        assert {key: count for key, count in logged(pages, flag).items() if key in keys} == dict.fromkeys(keys, 1)
    assert number > 15
