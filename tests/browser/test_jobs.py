"""An action on many objects: a page runs it in batches, and can be left and reopened."""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer

import pytest
from playwright.sync_api import Page, Route, expect

from dynamo_single.admin import DynamoAdminSite
from dynamo_single.admin.batch_actions import jobs
from project.directory.models import Company

#: Batches that are complete before the page is reopened.
ANSWERED = 4


@pytest.fixture
def job(signed_in: Page, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Open the confirmation of a job that deletes 500 found companies; a request is one batch."""
    monkeypatch.setattr(jobs, "MAX_SECONDS", 0)
    Company.objects.bulk_create(Company(name=f"Company {number:03}") for number in range(500))
    page = signed_in
    page.goto("/admin/directory/company/")
    page.locator("#action-toggle").check()
    page.get_by_role("button", name="Select all 500 companies").click()
    page.select_option("select[name=action]", "delete_selected")
    page.locator(".actions button[name=index]").click()
    page.wait_for_url("**/jobs/*/")  # the response for this page must be set after it
    return page


@pytest.fixture
def reloaded(job: Page) -> Page:
    """The page of the same job, opened again while a batch was on its way."""
    batches = 0

    def answer(route: Route) -> None:
        nonlocal batches
        batches += route.request.method == "POST"
        # The request after these gets no response, so that the job's progress is known.
        if route.request.method != "POST" or batches <= ANSWERED:
            route.continue_()

    job.route("**/jobs/*/", answer)
    job.locator("#job-form [type=submit]").click()
    expect(job.locator("#job-done")).to_have_text(str(ANSWERED * jobs.BATCH_SIZE))
    job.reload()
    job.unroute("**/jobs/*/", answer)
    return job


def test_many_selected_objects_become_a_job(job: Page) -> None:
    """The page announces its effect first."""
    expect(job.locator("#content h1")).to_have_text("Delete 500 companies")


def test_a_job_that_was_left_is_found_by_the_index(reloaded: Page) -> None:
    """The index shows its progress."""
    reloaded.goto("/admin/")
    reloaded.locator("#content").get_by_role("link", name="Jobs").click()
    expect(reloaded.locator(".dynamo-items tbody td").first).to_have_text("100 done, 400 left")
    reloaded.get_by_role("link", name="Delete 500 companies").click()
    expect(reloaded.get_by_role("button", name="Resume")).to_be_visible()


def test_both_answers_to_the_question_are_buttons_of_one_height(job: Page) -> None:
    """The way back is not smaller than the way on."""
    buttons = job.locator("#job-form [type=submit], #job-form .cancel-link")
    assert len({*buttons.evaluate_all("found => found.map(each => each.offsetHeight)")}) == 1


def test_a_job_that_is_opened_again_shows_how_far_it_is(screenshot: Callable[[str, int], None], reloaded: Page) -> None:
    """Completed batches stay completed."""
    screenshot("admin-job", 330)
    expect(reloaded.locator("#job-progress")).to_have_js_property("value", 100)


def test_a_job_that_is_opened_again_is_carried_on_to_its_end(reloaded: Page) -> None:
    """All companies are in the trash."""
    reloaded.get_by_role("button", name="Resume").click()
    expect(reloaded.locator("#content")).to_contain_text("The job is done.")
    assert (Company.objects.count(), Company.deleted_objects.count()) == (0, 500)


def test_page_follows_a_worker(job: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page sends the job to the worker, and shows the end without another click."""

    def enqueue(site: DynamoAdminSite, arguments: dict[str, str], delay: float = 0) -> bool:
        Timer(1, site.run_job, (arguments,)).start()
        return True

    monkeypatch.setattr(DynamoAdminSite, "enqueue_job", enqueue)
    job.locator("#job-form [type=submit]").click()
    expect(job.locator("#job-queued")).to_have_text("A worker runs this job. You can close this page.")
    expect(job.locator("#content")).to_contain_text("The job is done.", timeout=60_000)
    assert Company.objects.count() == 0
