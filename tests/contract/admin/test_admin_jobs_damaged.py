"""Damaged jobs of the admin stop no page: they are left out of the list, their own page is none, the log names them."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.table import Table
from project.directory.models import Company
from tests.contract.admin.test_admin_jobs import companies, job_of, small
from tests.contract.conftest import Pages, text_of
from tests.contract.damage import damages, items_of, store

__all__ = ["companies", "small"]

#: Attributes that have a default or that a job does not need.
OPTIONAL = ("without position", "without failures", "without failed", "without version", "version as NULL")


@pytest.fixture
def jobs(pages: Pages, companies: list[Any], table: Table) -> tuple[str, dict[str, Any]]:
    """Two jobs: the page of the first, and its item."""
    path = job_of(pages)
    (item,) = items_of(table, "AdminJob")
    job_of(pages, count=3)
    return path, item


def test_list_leaves_a_damaged_job_out(pages: Pages, jobs: tuple[str, Any], table: Table, caplog: Any) -> None:
    _, item = jobs
    for what, damaged in damages(item):
        store(table, damaged)
        caplog.clear()
        shown = pages.get("dynamodb/jobs/")
        assert (what, shown.status_code) == (what, 200)
        assert "Delete 3 companies" in text_of(shown)
        is_listed = "Delete 5 companies" in text_of(shown)
        assert (what, is_listed) == (what, "is damaged" not in caplog.text and not what.startswith("expiresAt"))


def test_page_of_a_damaged_job_is_none(pages: Pages, jobs: tuple[str, Any], table: Table, caplog: Any) -> None:
    """Nothing is done by it."""
    path, item = jobs
    for what, damaged in damages(item):
        if what not in OPTIONAL:
            store(table, damaged)
            assert (what, pages.get(path).status_code, pages.post(path).status_code) == (what, 404, 404)
    assert Company.objects.count() == 5
    assert f"The job pk='{item['pk']['S']}', sk='{item['sk']['S']}' is damaged" in caplog.text


def test_damaged_job_stops_no_other(pages: Pages, jobs: tuple[str, Any], companies: list[Any], table: Table) -> None:
    _, item = jobs
    store(table, {**item, "keys": {"N": "7"}})
    other = job_of(pages, count=4)
    assert pages.post(other).status_code == 302
    assert Company.objects.count() == 3
