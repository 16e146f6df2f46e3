"""The rows of a list as a file: the columns of the page, of all its rows that the filters leave."""

from __future__ import annotations

import csv
import datetime
import io
from typing import Any

import pytest

from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.contract.conftest import SIGNED_IN, Pages, text_of

LIST = "directory/company/"


@pytest.fixture(autouse=True)
def companies(table: object) -> None:
    """More than a page of them."""
    for number in range(5):
        Company.objects.create(
            company_id=f"c{number}",
            name=f"=Company {number}",
            founded=datetime.date(2020, 1, 1) if number else None,
            public=number > 1,
        )


def rows(response: Any) -> list[list[str]]:
    """The cells of a file."""
    return list(csv.reader(io.StringIO(response.content.decode(), newline="")))


def test_file_has_every_page(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page: one Query. A cell is no formula, and an empty one is empty."""
    monkeypatch.setattr(DynamoModelAdmin, "list_per_page", 2)
    response = pages.get(f"{LIST}?_csv=", sends=["Query"])
    assert response["Content-Disposition"] == 'attachment; filename="company.csv"'
    found = rows(response)
    assert found[0] == ["name", "ticker", "founded", "publicly traded"]
    assert found[1] == ["'=Company 0", "", "", "False"]
    assert [row[0] for row in found[1:]] == [f"'=Company {number}" for number in range(5)]


def test_file_has_rows_of_filter_and_order(pages: Pages) -> None:
    """The download link keeps the filter and the order."""
    page = pages.get(f"{LIST}?public__exact=1&o=-1")
    found = rows(pages.get(f"{LIST}{page.context['cl'].csv_link}"))
    assert [row[0] for row in found[1:]] == ["'=Company 4", "'=Company 3", "'=Company 2"]


@pytest.mark.parametrize(("option", "bound"), [("list_max_in_memory", 4), ("list_max_bytes", 300)])
def test_file_has_bounds_of_list(pages: Pages, monkeypatch: pytest.MonkeyPatch, option: str, bound: int) -> None:
    """A download never contains only some of the rows."""
    monkeypatch.setattr(DynamoModelAdmin, option, bound)
    response = pages.get(f"{LIST}?_csv=")
    assert response.status_code == 400
    assert "a download contains at most" in text_of(response)


def test_large_list_offers_no_file(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan has only some of the rows."""
    monkeypatch.setattr(DynamoModelAdmin, "list_max_in_memory", 2)
    for address in (LIST, f"{LIST}?q=2", f"{LIST}?q=company&scan="):
        assert "_csv" not in pages.get(address).content.decode()
    assert pages.get(f"{LIST}?q=2&_csv=").status_code == 400


def test_file_takes_permission_of_list(staff: Any) -> None:
    """And hides what the list hides."""
    pages = staff("directory.view_person")
    Person.objects.create(company_id="c0", name="Ann")
    assert pages.get(f"{LIST}?_csv=").status_code == 403
    (row,) = rows(pages.get("directory/person/?_csv="))[1:]
    assert row == ["Ann", "", "Member", "Company"]


def test_file_does_not_show_secrets(pages: Pages) -> None:
    """A column of a secret has its mask."""
    with assert_requests([*SIGNED_IN, "Query"]):
        assert "pbkdf2" not in pages.client.get("/admin/accounts/user/?_csv=").content.decode()
