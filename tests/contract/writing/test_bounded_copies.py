"""``CopiedAttribute(max_holders=...)``: a change with too many copies raises an error, or becomes a job."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from dynamo_single import models, transactions
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import ConfigurationError, TooManyHolders
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.studios import Imprint, Pressing
from tests.contract.clubs import items
from tests.contract.tables import assert_consistent

pytestmark = pytest.mark.usefixtures("table")


def label(records: int) -> Any:
    """A label with so many records."""
    made = Imprint.objects.create(imprint_id="l", name="old", motto="old")
    Pressing.objects.bulk_create([Pressing(imprint=made, number=number) for number in range(records)])
    return Imprint.objects.get(pk="l")


def copies(name: str) -> set[str]:
    """Return the copies in the records."""
    return {getattr(record, name) for record in Pressing.objects.filter(imprint="l")}


def test_as_many_as_are_allowed_follow() -> None:
    made = label(3)
    made.name = "new"
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        made.save()
    assert copies("imprint_name") == {"new"}


@pytest.mark.parametrize("how", ["save", "update", "block"])
def test_one_more_is_refused_and_nothing_is_written(table: Table, how: str) -> None:
    made = label(4)
    made.name = "new"
    before = items(table)
    with pytest.raises(TooManyHolders, match=r"more than 3 catalog\.Pressing objects hold a copy of name") as caught:
        if how == "save":
            made.save()
        elif how == "update":
            Imprint.objects.filter(pk="l").update(name="new")
        else:
            with transactions.atomic():
                made.save()
    assert caught.value.limit == 3
    assert items(table) == before


def test_what_is_not_copied_is_no_matter_of_bounds() -> None:
    made = label(9)
    with assert_requests([]):
        made.save()


def test_within_its_bound_a_job_is_none() -> None:
    made = label(4)
    made.motto = "new"
    made.save()
    assert copies("imprint_motto") == {"new"}
    assert_consistent()


def test_beyond_its_bound_the_change_is_written_alone_and_a_job_completes_it(table: Table) -> None:
    made = label(120)
    made.motto = "new"
    with assert_requests(["Query", "UpdateItem"]):
        made.save()
    assert items(table)["IMPRINT#l", "#METADATA"]["copiesDue"] == {"SS": ["Pressing.imprint_motto"]}
    assert copies("imprint_motto") == {"old"}
    assert "copies due" in {finding.kind for finding in verify()}
    with assert_requests(["Query"]):
        made.save()
    assert copies("imprint_motto") == {"old"}
    call_command("dynamo_rebuild", "catalog.Imprint", stdout=StringIO())
    assert copies("imprint_motto") == {"new"}
    assert_consistent()


def test_a_second_change_before_the_job_is_what_the_job_copies() -> None:
    made = label(6)
    for motto in ("new", "newer"):
        made.motto = motto
        made.save()
    assert copies("imprint_motto") == {"old"}
    call_command("dynamo_rebuild", "catalog.Imprint", stdout=StringIO())
    assert copies("imprint_motto") == {"newer"}


@pytest.mark.parametrize(
    "options",
    [
        {"max_holders": 0},
        {"max_holders": True},
        {"max_holders": "3"},
        {"max_holders": 1, "beyond": "wait"},
        {"beyond": "job"},
    ],
)
def test_a_bound_is_a_number(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        models.CopiedAttribute("imprint", "name", **options)
