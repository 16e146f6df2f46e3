"""Actions on many objects: a job that only its owner can run, batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from dynamo_single.admin.batch_actions import actions, jobs
from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.admin.log import LogEntry
from dynamo_single.costs import measure_requests
from dynamo_single.testing import capture_requests, moved_time
from project.directory.admin import CompanyAdmin
from project.directory.models import Company, Person
from tests.contract.conftest import Pages, link, text_of

LIST = "directory/company/"
DELETE = ("directory.view_company", "directory.delete_company")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few objects are many, and each request does one batch."""
    monkeypatch.setattr(actions, "MAX_IMMEDIATE", 2)
    monkeypatch.setattr(jobs, "BATCH_SIZE", 2)
    monkeypatch.setattr(jobs, "MAX_SECONDS", 0.0)
    yield


@pytest.fixture
def companies(table: object) -> list[Any]:
    """Five of them, the first with a person."""
    found = [Company.objects.create(company_id=f"c{number}", name=f"Company {number}") for number in range(5)]
    Person.objects.create(company=found[0], person_id="p", name="Anna")
    return found


def chosen(pages: Pages, action: str = "delete_selected", query: str = "", count: int = 5) -> Any:
    """Choose an action for some of them."""
    keys = [f"c{number}" for number in range(count)]
    return pages.post(f"{LIST}{query}", {"action": action, "_selected_action": keys})


def job_of(pages: Pages, **choice: Any) -> str:
    """The path of the job that the choice became."""
    answer = chosen(pages, **choice)
    assert answer.status_code == 302
    assert "/dynamodb/jobs/" in answer["location"]
    return str(answer["location"]).removeprefix("/admin/")


def carried_out(pages: Pages, path: str) -> int:
    """Carry a job on until it is done: how often that took."""
    times = 0
    while not pages.get(path).context["job"].is_done:
        assert pages.post(path).status_code == 302
        times += 1
    return times


def test_many_objects_become_a_job_that_has_done_nothing_yet(pages: Pages, companies: list[Any]) -> None:
    """Its page asks whether one is sure."""
    path = job_of(pages)
    assert Company.objects.count() == 5
    page = pages.get(path, sends=["GetItem", "BatchGetItem", *["Query"] * 5])
    assert "Move 5 companies and 1 person to the trash?" in text_of(page)


def test_few_objects_are_asked_for_as_ever(pages: Pages, companies: list[Any]) -> None:
    """Django's page lists them."""
    answer = chosen(pages, count=2)
    assert answer.status_code == 200
    assert "Company 1" in text_of(answer)


def test_a_job_is_carried_on_batch_by_batch(pages: Pages, companies: list[Any]) -> None:
    """Objects go to the trash with their dependents, and each has an entry in the log."""
    path = job_of(pages)
    assert carried_out(pages, path) == 3
    assert Company.objects.count() == 0
    assert Company.deleted_objects.count() == 5
    assert Person.objects.count() == 0
    assert {entry.object_id for entry in LogEntry.objects.filter(user_id=pages.user.pk)} == {f"c{n}" for n in range(5)}
    assert "The job is done" in text_of(pages.get(path))


def test_batch_sends_one_read_and_two_writes(pages: Pages, companies: list[Any]) -> None:
    """A Query per object checks the rights, a Query and an update delete it, and an entry goes to the log."""
    path = job_of(pages)
    pages.post(path)
    each = ["Query", "UpdateItem", "Query"]
    sends = [
        "GetItem",
        "UpdateItem",
        "BatchGetItem",
        "Query",
        "Query",
        *each,
        *each,
        "PutItem",
        "PutItem",
        "UpdateItem",
    ]
    pages.post(path, sends=sends)


def test_batch_is_read_consistently(pages: Pages, companies: list[Any]) -> None:
    """An object that an eventually consistent read does not show yet would count as done."""
    path = job_of(pages)
    with capture_requests() as sent:
        pages.post(path)
    reads = [each.params["RequestItems"] for each in sent if each.operation == "BatchGetItem"]
    assert reads
    assert all(table["ConsistentRead"] for read in reads for table in read.values())


def test_the_script_is_told_how_far_it_is(pages: Pages, companies: list[Any]) -> None:
    """The response contains the progress as JSON."""
    path = job_of(pages)
    answer = pages.client.post(f"/admin/{path}", headers={"accept": "application/json"})
    assert answer.json() == {"done": 2, "total": 5, "failed": 0, "stopped": False, "claimed": False, "queued": False}


def test_what_somebody_else_has_done_meanwhile_counts_as_done(pages: Pages, companies: list[Any]) -> None:
    """Deleted by another tab, or by a batch whose end was not stored."""
    path = job_of(pages)
    companies[1].delete()
    companies[3].hard_delete()
    carried_out(pages, path)
    assert Company.all_objects.count() == 4
    assert pages.get(path).context["job"].failed == 0


def test_the_trash_is_restored_and_emptied_so(pages: Pages, companies: list[Any]) -> None:
    """Each with its own permission."""
    carried_out(pages, job_of(pages))
    carried_out(pages, job_of(pages, action="restore_selected", query="?trash=yes"))
    assert Company.objects.count() == 5
    assert Person.objects.count() == 1
    carried_out(pages, job_of(pages))
    carried_out(pages, job_of(pages, query="?trash=yes"))
    assert Company.all_objects.count() == 0


def test_what_is_refused_is_named_and_stays(pages: Pages, companies: list[Any]) -> None:
    """A name that another object has taken since cannot be restored."""
    for number in range(3):
        Person.objects.create(
            company=companies[number], person_id=f"x{number}", name="X", email=f"x{number}@example.com"
        )
    keys = [person.pk for person in Person.objects.filter(name="X")]
    for person in Person.objects.filter(name="X"):
        person.delete()
    Person.objects.create(company=companies[0], person_id="new", name="New", email="x1@example.com")
    answer = pages.post("directory/person/?trash=yes", {"action": "restore_selected", "_selected_action": keys})
    path = str(answer["location"]).removeprefix("/admin/")
    carried_out(pages, path)
    shown = text_of(pages.get(path))
    assert "1 object was rejected" in shown
    assert "x1@example.com" in shown
    assert Person.objects.filter(name="X").count() == 2


def test_a_job_is_its_owners_alone(pages: Pages, staff: Any, companies: list[Any]) -> None:
    """To others it is not there, whatever they may do."""
    path = job_of(pages)
    other = staff(*DELETE)
    assert other.get(path).status_code == 404
    assert other.post(path).status_code == 404
    assert Company.objects.count() == 5


def test_rights_are_asked_with_each_batch(staff: Any, companies: list[Any]) -> None:
    """A user who has lost the rights cannot continue the job; finished batches stay."""
    pages = staff(*DELETE, "directory.delete_person")
    path = job_of(pages)
    pages.post(path)
    pages.user.permissions = {"directory.view_company"}
    pages.user.save()
    assert pages.post(path).status_code == 403
    assert Company.objects.count() == 3


def test_a_job_expires(pages: Pages, companies: list[Any]) -> None:
    """The page of a job returns a 404 after a day."""
    path = job_of(pages)
    with moved_time(timedelta(days=2)):
        pages.client.force_login(pages.user)
        assert pages.get(path).status_code == 404


def test_a_request_of_another_site_carries_nothing_on(pages: Pages, companies: list[Any]) -> None:
    """Its token is missing."""
    path = job_of(pages)
    pages.client.handler.enforce_csrf_checks = True
    assert pages.post(path).status_code == 403
    assert AdminJob.objects.get(user_key=str(pages.user.pk), job_id=path.split("/")[-2]).position == 0


@pytest.mark.parametrize("job_id", ["none", "a%2Fb", "%00", "x" * 3000])
def test_a_job_that_is_not_there_is_not_found(pages: Pages, job_id: str) -> None:
    """404."""
    assert pages.get(f"dynamodb/jobs/{job_id}/").status_code == 404


def test_more_objects_than_a_job_takes_are_refused(
    pages: Pages, companies: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is begun."""
    monkeypatch.setattr(actions, "MAX_JOB_OBJECTS", 4)
    answer = pages.client.post(
        f"/admin/{LIST}", {"action": "delete_selected", "_selected_action": [f"c{n}" for n in range(5)]}, follow=True
    )
    assert "You selected too many objects" in text_of(answer)
    assert Company.objects.count() == 5


def test_an_object_that_the_user_may_not_delete_holds_up_nothing_else(
    pages: Pages, companies: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page names the object, which is kept."""
    path = job_of(pages)
    asked = jobs.is_allowed

    def allowed(request: Any, modeladmin: Any, action: str, obj: Any = None) -> bool:
        return asked(request, modeladmin, action, obj) and (obj is None or obj.pk != "c1")

    monkeypatch.setattr(jobs, "is_allowed", allowed)
    carried_out(pages, path)
    assert [company.pk for company in Company.objects.all()] == ["c1"]
    assert "You do not have permission to do this." in text_of(pages.get(path))


def test_all_of_a_list_is_read_as_far_as_a_job_goes(
    pages: Pages, companies: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is read only up to the limit of a job, and for the page that it shows."""
    Company.objects.bulk_create(Company(company_id=f"more{number:02}", name=f"More {number}") for number in range(60))
    monkeypatch.setattr(actions, "MAX_JOB_OBJECTS", 3)
    monkeypatch.setattr(CompanyAdmin, "list_max_in_memory", 5)
    monkeypatch.setattr(CompanyAdmin, "list_per_page", 5)
    choice = {"action": "delete_selected", "select_across": "1", "_selected_action": ["c0"]}
    with measure_requests() as costs:
        answer = pages.client.post(f"/admin/{LIST}", choice)
    assert answer.status_code == 302
    assert "/jobs/" not in answer["location"]
    assert Company.objects.count() == 65
    assert costs.items_read < 40


def test_all_of_a_list_becomes_a_job(pages: Pages, companies: list[Any]) -> None:
    """The job includes objects on other pages of the list."""
    answer = pages.post(LIST, {"action": "delete_selected", "select_across": "1", "_selected_action": ["c0"]})
    path = str(answer["location"]).removeprefix("/admin/")
    carried_out(pages, path)
    assert Company.objects.count() == 0


JOBS = "dynamodb/jobs/"


def test_a_job_that_was_left_is_found_again(pages: Pages, companies: list[Any]) -> None:
    """In the list of one's jobs, newest first, which the index leads to: one Query."""
    first, second = job_of(pages), job_of(pages, count=3)
    pages.post(first)
    assert f'href="/admin/{JOBS}"' in pages.get("").content.decode()
    page = pages.get(JOBS, sends=["Query"])
    assert [address for _, _, address in page.context["jobs"]] == [f"/admin/{second}", f"/admin/{first}"]
    shown = text_of(page)
    assert "Delete 3 companies Not started" in shown
    assert "Delete 5 companies 2 done, 3 left" in shown


def test_the_list_has_what_is_done_and_what_was_refused(pages: Pages) -> None:
    """A job of a removed model has neither a page nor a link."""
    expires = "2099-01-01T00:00:00Z"
    own = {"user_key": str(pages.user.pk), "expires_at": expires, "action": "delete", "keys": ["a"], "position": 1}
    AdminJob.objects.create(label="directory.company", failed=1, **own)
    AdminJob.objects.create(label="directory.gone", **own)
    page = pages.get(JOBS)
    assert "Delete 1 companies Done; 1 refused" in text_of(page)
    assert "directory.gone Done" in text_of(page)
    assert [bool(name) for _, name, _ in page.context["jobs"]] == [False, True]


def test_nobody_sees_the_jobs_of_others(pages: Pages, staff: Any, companies: list[Any]) -> None:
    """The list also omits jobs that expired."""
    job_of(pages)
    assert "You have not started any jobs" in text_of(staff(*DELETE).get(JOBS))
    with moved_time(timedelta(days=2)):
        pages.client.force_login(pages.user)
        assert "You have not started any jobs" in text_of(pages.get(JOBS))


def test_the_list_is_for_those_who_may_have_jobs(staff: Any) -> None:
    """To others the index has no link, and the page is forbidden."""
    pages = staff("directory.view_company")
    assert JOBS not in pages.get("").content.decode()
    assert pages.get(JOBS).status_code == 403


def test_many_jobs_come_page_by_page(pages: Pages) -> None:
    """A page has twenty jobs; an invalid cursor returns a 400."""
    own = {"user_key": str(pages.user.pk), "expires_at": "2099-01-01T00:00:00Z", "action": "delete", "keys": ["a"]}
    for _ in range(25):
        AdminJob.objects.create(label="directory.company", **own)
    first = pages.get(JOBS)
    second = pages.get(f"{JOBS}{link(first, 'next')}", sends=["Query"])
    assert (len(first.context["jobs"]), len(second.context["jobs"])) == (20, 5)
    assert pages.get(f"{JOBS}{link(second, 'prev')}").context["jobs"][0][0] == first.context["jobs"][0][0]
    assert pages.get(f"{JOBS}?cursor=x").status_code == 400
    assert pages.post(JOBS).status_code == 405


def test_site_without_worker_imports_none(pages: Pages, companies: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The page runs the job itself."""
    name = "dynamo_single.admin.batch_actions.worker"
    monkeypatch.delitem(sys.modules, name, raising=False)
    carried_out(pages, job_of(pages))
    assert name not in sys.modules
