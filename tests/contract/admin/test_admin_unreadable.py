"""The admin's page for an unreadable item reports that the item exists, and does not blame the request."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from dynamo_single.table import get_table
from project.directory.models import Company, Person
from tests.contract.conftest import NO_INLINES, Pages, text_of

SAID = "Stored data cannot be read"
#: A string instead of a date, a number instead of a string, and an item of another type under the key.
BROKEN = [("founded", {"S": "nonsense"}), ("name", {"N": "1"}), ("itemType", {"S": "Other"})]


def corrupt(name: str, value: Any, sort: str = "#METADATA") -> None:
    """Let another program write an attribute of the company's items."""
    table = get_table()
    table.call(
        "UpdateItem",
        {
            "TableName": table.name,
            "Key": {"pk": {"S": "COMPANY#acme"}, "sk": {"S": sort}},
            "UpdateExpression": "SET #a = :v",
            "ExpressionAttributeNames": {"#a": name},
            "ExpressionAttributeValues": {":v": value},
        },
    )


@pytest.fixture
def acme(pages: Pages) -> Company:
    """A company."""
    return Company.objects.create(company_id="acme", name="Acme")


@pytest.mark.parametrize(("name", "value"), BROKEN)
@pytest.mark.parametrize("page", ["acme/change/", "acme/delete/", "acme/history/", ""])
def test_an_item_that_cannot_be_read_is_a_page_of_its_own(
    pages: Pages, acme: Company, name: str, value: Any, page: str
) -> None:
    """The object exists, and only developers see the problem."""
    corrupt(name, value)
    answer = pages.get(f"directory/company/{page}")
    assert (answer.status_code, SAID in text_of(answer)) == (500, True)
    assert "stored item" not in text_of(answer)
    assert '<a href="/admin/dynamodb/health/">' in answer.content.decode()


def test_developers_read_what_is_wrong(pages: Pages, acme: Company) -> None:
    """With DEBUG."""
    corrupt("founded", {"S": "nonsense"})
    with override_settings(DEBUG=True):
        assert "in founded, and founded reads a date" in text_of(pages.get("directory/company/acme/change/"))


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_child_that_cannot_be_read_is_one_too(pages: Pages, acme: Company, method: str) -> None:
    """The inline's row is no error of the form."""
    Person.objects.create(company=acme, person_id="anna", name="Anna")
    corrupt("name", {"N": "1"}, sort="PEOPLE#anna")
    rows = {"person_set-TOTAL_FORMS": "1", "person_set-INITIAL_FORMS": "1", "person_set-0-identity": "acme~~anna"}
    data = {"name": "Apex", **NO_INLINES, **rows} if method == "post" else {}
    answer = getattr(pages, method)("directory/company/acme/change/", *([data] if data else []))
    assert (answer.status_code, SAID in text_of(answer)) == (500, True)
    assert Company.objects.get(pk="acme").name == "Acme"


def test_an_object_that_is_not_there_is_still_not_there(pages: Pages, acme: Company) -> None:
    """Impossible keys also lead to this page."""
    for pk in ("nobody", "_00"):
        assert pages.get(f"directory/company/{pk}/change/").headers["Location"] == "/admin/"
