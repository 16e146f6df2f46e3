"""The end of a job: its undo, its failures as a file, and its confirmation page."""

from __future__ import annotations

import csv
import io
import re
import time
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dynamo_single.admin.batch_actions import actions, confirmations, jobs
from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.clock import now
from project.directory.models import Company, Person
from tests.contract.conftest import Pages, text_of

LIST = "directory/company/"


@pytest.fixture(autouse=True)
def companies(monkeypatch: pytest.MonkeyPatch, table: object) -> list[Any]:
    """Three of them, the first with a person; two are too many for one request."""
    monkeypatch.setattr(actions, "MAX_IMMEDIATE", 1)
    found = [Company.objects.create(company_id=f"c{number}", name=f"Company {number}") for number in range(3)]
    Person.objects.create(company=found[0], person_id="p", name="Anna")
    return found


def begun(pages: Pages, action: str = "delete_selected", query: str = "") -> str:
    """Choose an action for all companies, and return the path of its job."""
    keys = [f"c{number}" for number in range(3)]
    answer = pages.post(f"{LIST}{query}", {"action": action, "_selected_action": keys})
    return str(answer["location"]).removeprefix("/admin/")


def done(pages: Pages, path: str) -> str:
    """Run the job and return its path."""
    while not pages.get(path).context["job"].is_done:
        pages.post(path)
    return path


def failed(pages: Pages, *failures: list[str]) -> str:
    """Create a finished job with these failures, and return its path."""
    job = AdminJob.objects.create(
        user_key=str(pages.user.pk),
        label="directory.company",
        action="delete",
        keys=["c0", "c1"],
        position=2,
        failures=[*failures],
        failed=len(failures),
        expires_at=now() + timedelta(hours=1),
    )
    return f"dynamodb/jobs/{job.job_id}/"


def test_undo_restores_what_a_job_deleted(pages: Pages) -> None:
    """The button restores the objects and their children immediately, without a confirmation page."""
    path = done(pages, begun(pages))
    assert Company.objects.count() == 0
    answer = pages.post(path, {"undo": "yes"})
    assert "The job is done." in text_of(pages.get(str(answer["location"]).removeprefix("/admin/").partition("#")[0]))
    assert (Company.objects.count(), Person.objects.filter(company_id="c0").count()) == (3, 1)


def test_undo_leaves_what_others_deleted_afterwards(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that was restored and deleted again was not deleted by the job."""
    monkeypatch.setattr(jobs, "CLAIM_TIME", timedelta(0))
    path = done(pages, begun(pages))
    Company.deleted_objects.get(pk="c1").restore()
    time.sleep(0.005)
    Company.objects.get(pk="c1").delete()
    done(pages, str(pages.post(path, {"undo": "yes"})["location"]).removeprefix("/admin/").partition("#")[0])
    assert sorted(each.pk for each in Company.objects.all()) == ["c0", "c2"]


def test_undo_leaves_what_the_job_could_not_delete(pages: Pages) -> None:
    """Another user deleted it."""
    path = failed(pages, ["c0", "Company 0", "no"])
    Company.objects.filter(pk__in=["c0", "c1"]).delete()
    done(pages, str(pages.post(path, {"undo": "yes"})["location"]).removeprefix("/admin/").partition("#")[0])
    assert sorted(each.pk for each in Company.objects.all()) == ["c1", "c2"]


def test_unfinished_jobs_have_no_undo(pages: Pages) -> None:
    assert pages.post(begun(pages), {"undo": "yes"}).status_code == 403


def test_permanent_deletions_have_no_undo(pages: Pages) -> None:
    """The page warns about this before and after."""
    Company.objects.all().delete()
    path = begun(pages, query="?trash=yes")
    question = "Are you sure you want to permanently delete 3 companies and 1 person? This cannot be undone."
    assert question in text_of(pages.get(path))
    shown = text_of(pages.get(done(pages, path)))
    assert "This page cannot undo this job." in shown
    assert pages.post(path, {"undo": "yes"}).status_code == 403


def test_undo_takes_the_permission_to_restore(staff: Any) -> None:
    pages = staff("directory.view_company", "directory.delete_company", "directory.delete_person")
    path = failed(pages)
    assert "Undo" not in text_of(pages.get(path))
    assert pages.post(path, {"undo": "yes"}).status_code == 403


def test_question_names_the_day_of_the_purge(pages: Pages, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    monkeypatch.setattr(Company, "_options", replace(Company._options, purge_after=timedelta(days=30)))
    day = (now() + timedelta(days=30)).strftime("%Y")
    question = rf"Move 3 companies and 1 person to the trash\? You can restore them until [A-Z.a-z]+ \d+, {day}\."
    assert re.search(question, text_of(pages.get(begun(pages))))


def test_question_counts_within_bounds(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page counts the dependent objects of only the first objects, and reports a minimum."""
    path = begun(pages)
    pages.get(path, sends=["GetItem", "BatchGetItem", *["Query"] * 3])  # a partition of each company
    monkeypatch.setattr(confirmations, "MAX_ROOTS", 2)
    assert "Move 3 companies and at least 1 person to the trash?" in text_of(pages.get(path))
    monkeypatch.setattr(confirmations, "MAX_ROOTS", 3)
    monkeypatch.setattr(confirmations, "MAX_RELATED", 1)
    assert "Move 3 companies and at least 1 person to the trash?" in text_of(pages.get(path))


def test_question_of_few_objects_counts_related_ones(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Django's own page, with the numbers that it has counted."""
    monkeypatch.setattr(actions, "MAX_IMMEDIATE", 3)
    answer = pages.post(LIST, {"action": "delete_selected", "_selected_action": ["c0", "c1"]})
    assert "Move 2 companies and 1 person to the trash? You can restore them later." in text_of(answer)


def test_question_counts_no_hidden_objects(staff: Any) -> None:
    """The page does not read people for a user who may not view them."""
    pages = staff("directory.view_company", "directory.delete_company")
    text = text_of(pages.get(begun(pages)))
    assert "Move 3 companies to the trash?" in text


def test_failures_are_a_file_without_formulas(pages: Pages) -> None:
    path = failed(pages, ["c0", "=1+1", "It is protected."], ["c1", "Company 1", "No."])
    assert "?failures=csv" in pages.get(path).content.decode()
    response = pages.get(f"{path}?failures=csv", sends=["GetItem"])
    rows = list(csv.reader(io.StringIO(response.content.decode(), newline="")))
    assert rows[1:] == [["c0", "'=1+1", "It is protected."], ["c1", "Company 1", "No."]]
    assert response["Content-Disposition"] == 'attachment; filename="failures.csv"'


def test_failures_of_other_users_are_not_found(pages: Pages, staff: Any) -> None:
    path = failed(pages, ["c0", "Company 0", "No."])
    other = staff("directory.view_company", "directory.delete_company")
    assert other.get(f"{path}?failures=csv").status_code == 404
